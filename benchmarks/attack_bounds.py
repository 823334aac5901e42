"""Read small inputs that stand for much more, and files that are traps, within limits of time and memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from attack_tally import Budget, Tally

from peekbench import load_dataset
from peekbench.data.loading import forget
from peekbench.results import load_results
from peekbench.spec.experiment import parse_spec

Action = Callable[[], Any]
LONG = 2**25


def special_files(folder: Path) -> dict[str, Action]:
    """Return files that are traps of their own, by a label."""

    def write(name: str, content: bytes, **options: Any) -> Callable[[], Any]:
        (folder / name).write_bytes(content)
        return partial(load_dataset, "files", {"path": name, **options}, folder=folder)

    os.mkfifo(folder / "pipe.csv")
    (folder / "loop.csv").symlink_to("loop.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    (folder / "folder.csv").mkdir()
    parquet = {
        "many rows": pa.table({"text": pa.DictionaryArray.from_arrays(np.zeros(11_000_000, "int8"), ["x"]),
                               "label": pa.DictionaryArray.from_arrays(np.zeros(11_000_000, "int8"), ["x"])}),
        "lists": pa.table({"text": [["a"]], "label": [[1]]}),
        "dates": pa.table({"text": ["a", "b"], "label": pd.to_datetime(["2026-01-01", "2026-01-02"])}),
        "binary": pa.table({"text": [b"a", b"b"], "label": [b"x", b"y"]}),
        "nothing": pa.table({"text": pa.nulls(3), "label": pa.nulls(3)}),
        "duplicates": pa.Table.from_arrays([pa.array(["a"])] * 3, ["text", "text", "label"]),
    }  # fmt: skip
    for name, table in parquet.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    return {
        **{
            path: partial(load_dataset, "files", {"path": path}, folder=folder)
            for path in ("pipe.csv", "loop.csv", "zero.csv", "folder.csv", "~nosuchuser/a.csv", "a\x00.csv",
                         "n" * 300 + ".csv", *(f"{name}.parquet" for name in parquet))
        },
        "one line": write("line.csv", b"text,label\n" + b"x" * 2**25),
        "one field": write("field.csv", b'text,label\n"' + (b"x" * 1000 + b"\n") * 2**15),
        "one object": write("object.jsonl", b'{"text": "' + b"x" * 2**25),
        "many columns": write("columns.csv", b",".join(b"c%d" % number for number in range(100_000)) + b"\n"),
        "many labels": write("labels.csv", b"text,label\n" + b"".join(b"t,%d\n" % number for number in range(100_000))),
        "same keys": write("keys.jsonl", b'{"text": "a", "text": "b", "label": 1}\n{"text": "a", "label": 2}\n'),
        "surrogates": write("halves.jsonl", b'{"text": "\\ud800", "label": 1}\n{"text": "b", "label": "\\udfff"}\n'),
        "large number": write("number.jsonl", b'{"text": "a", "label": ' + b"9" * 5000 + b"}\n"),
        "utf-7": write("utf7.csv", b"text,label\n+2AA-,a\nb,+3\n", encoding="utf-7"),
        "utf-16": write("utf16.csv", "text,label\na,b\nc,d\n".encode("utf-16-le") + b"\x00", encoding="utf-16"),
        "no delimiter": write("delimiter.csv", b"text,label\na,b\nc,d\n", delimiter="\u2028"),
    }  # fmt: skip


def bombs(folder: Path) -> dict[str, Action]:
    """Return Parquet files of a few kilobytes that stand for much more, for each of their readers."""
    long = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, "int32"), ["x" * 5_000_000])
    short = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, "int32"), ["x" * 300])
    labels = pa.array(["a", "b"]).dictionary_encode().take(pa.array(np.arange(len(long)) % 2))
    tables = {
        "5 TB": pa.table({"text": long, "label": labels}),
        "0.3 GB": pa.table({"text": short, "label": labels}),
        "compressed": pa.table({"text": ["x" * 2**26] * 4, "label": ["a", "b"] * 2}),
        "prefixes": pa.table({"text": [f"{'x' * 2**20}{row}" for row in range(300)], "label": ["a", "b"] * 150}),
    }
    actions: dict[str, Action] = {}
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        encoding = {"text": "DELTA_BYTE_ARRAY"} if name == "prefixes" else None
        pq.write_table(
            table, path, compression="zstd", use_dictionary=not encoding and "compressed" not in name,
            column_encoding=encoding,
        )  # fmt: skip
        actions[f"files: {name}"] = partial(load_dataset, "files", {"path": path.name}, folder=folder)
        actions[f"scores: {name}"] = partial(load_results, path)
        mirror = folder / name / "datasets" / "a" / "b" / "main"
        mirror.mkdir(parents=True)
        os.link(path, mirror / "train.parquet")
        options = {"id": "a/b", "files": "*.parquet", "data_dir": str(folder / name), "revision": "main"}
        actions[f"hf: {name}"] = partial(load_dataset, "hf.dataset", options, folder=folder)
    return actions


def specs() -> dict[str, Action]:
    """Return specs whose aliases, numbers or names stand for much more."""
    aliases = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    texts = {
        "alias list": f"a0: &a0 [x]\n{aliases}\nname: a\ntasks: *a11",
        "deep list": "name: " + "[" * 50_000,
        "long name": f"name: {'x' * LONG}",
        "many names": f"name: a\ntasks: [{', '.join(f'task{n}' for n in range(20_000))}]",
        "huge number": f"name: a\nseed: {'9' * 100_000}",
        "huge design": "name: a\ntasks: [docstrings.all]\nmethods: [controls.null]\n"
        "design: {num_train: 50, num_test: 50, num_subsamples: 1000000000000}",
        "many keys": "name: a\n" + "".join(f"key{n}: 1\n" for n in range(50_000)),
    }
    return {f"spec: {name}": partial(parse_spec, text, folder=Path()) for name, text in texts.items()}


def bounds(budget: Budget) -> Tally:
    """Read all inputs."""
    tally = Tally("bounds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        actions = {**special_files(folder), **specs(), **bombs(folder)}
        labels = list(actions)
        for position in Budget(min(len(labels), budget.number), seconds=budget.seconds):
            tally.attempt(labels[position][:40], actions[labels[position]])
    forget()
    return tally
