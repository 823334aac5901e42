"""Mutates tables of scores and data files at random. Each must be read or give a clear error, in bounded time.

Tables that are read are also analyzed and reported. Files are read by the data source `files`.

    python benchmarks/attack_tables.py [--tables 1500] [--files 140] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from attack_bounds import Tally, limit_memory

from peekbench import load_dataset
from peekbench.data.loading import forget
from peekbench.report import report_of_table, write_report
from peekbench.results import load_results, tidy
from peekbench.results.analyze import analyze

ANALYSES = ("summary", "permutation", "consistency")
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"drop_missing": True}, {"quote": ""}, {"encoding": "latin-1"})
NAMES = (
    "task", "method", "model", "num_train", "num_test", "control", "subsample", "arm", "score", "accuracy",
    "num_correct",
    "log_loss", "brier", "macro_f1", "majority", "fit_seconds", "base", "extra", "test", "mix-0.25", "mix-0.5", "", " ",
    "Unnamed: 0", "__index_level_0__", "index", "seed", "run", "fold", "Task", "n_test", "model_name", "x" * 3000,
    "\x1b[2J", "\u202e", "task ", "test.1",
)  # fmt: skip
CELLS: tuple[Any, ...] = (
    None, "", " ", "nan", "NA", "inf", "-inf", "True", "False", True, False, 0, 1, -1, 0.5, 1.5, 50, 87.5, 1e-320,
    1e19, -1e19, 2**53 + 1, 2**64, 10**400, 1e308, -1e308, "1e400", "9" * 30, "0x10", "1_000", "0,5", "50%", "½",
    "١٢", "a", "x" * 5000, "\x00", "\ud800", "\x1b[31m", "\u202e", '"', "a,b", "a\nb", "<script>", "=1+1", "negative",
    "positive", "base", "extra", "test", "mix-0.0", "mix-.5", [], [1], {"a": 1}, (1, 2), {1}, b"x", 1j, np.nan, pd.NA,
    pd.NaT, pd.Timestamp("2026-01-01"), np.float64("inf"), np.array([1, 2]), float,
)  # fmt: skip


def make_table(rng: random.Random) -> pd.DataFrame:
    """Return a valid table with a random form, size and choice of columns."""
    generator = np.random.default_rng(rng.randrange(2**32))
    num_test = rng.choice([10, 50, 200])
    arms = rng.choice([["extra", "test"], ["base", "extra", "test"], ["base", "extra", "test", "mix-0.25"]])
    names = [
        (f"task {task}", f"method {method}", subsample)
        for task in range(rng.randint(1, 3))
        for method in range(rng.randint(1, 2))
        for subsample in range(rng.randint(2, 6))
    ]
    table = pd.DataFrame(names, columns=["task", "method", "subsample"])
    if rng.random() < 0.7:
        table["num_test"] = num_test
    if rng.random() < 0.5:
        table["num_train"] = 50
    if rng.random() < 0.3:
        table["control"] = np.where(table["method"] == "method 1", "negative", "")
    for arm in arms:
        table[arm] = generator.binomial(num_test, 0.7, len(table)) / num_test
    if rng.random() < 0.5:
        columns = [column for column in table.columns if column not in arms]
        table = table.melt(columns, arms, "arm", rng.choice(["score", "accuracy"]))
    return table


def mutate_table(table: pd.DataFrame, rng: random.Random) -> pd.DataFrame:
    """Return a table with one to three cells, columns or rows changed."""
    for _ in range(rng.randint(1, 3)):
        if table.empty or not len(table.columns):
            break
        row, position = rng.randrange(len(table)), rng.randrange(len(table.columns))
        columns = list(table.columns)
        match rng.randrange(9):
            case 0:
                table = table.drop(index=table.index[row])
            case 1:
                table = table.iloc[:, [each for each in range(len(columns)) if each != position]]
            case 2:
                columns[position] = rng.choice(NAMES)
                table = table.set_axis(columns, axis="columns")
            case 3:
                table = pd.concat([table, table.iloc[:, [position]]], axis="columns")
            case 4:
                table = table.sample(frac=1, random_state=rng.randrange(1000))
            case 5:
                values = [rng.choice(CELLS) for _ in range(3)]
                column = [values[rng.randrange(3)] for _ in range(len(table))]
                table = table.assign(**{rng.choice(NAMES) or "x": pd.Series(column, index=table.index, dtype="object")})
            case 6 if table.columns.is_unique:
                table = table.set_index(columns[position])
            case _:
                cells = table.iloc[:, position].astype("object").tolist()
                cells[row] = rng.choice(CELLS)
                values = [table.iloc[:, each] for each in range(len(columns))]
                values[position] = pd.Series(cells, index=table.index, dtype="object")
                table = pd.concat(values, axis="columns").set_axis(columns, axis="columns")
    return table


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return content with one to four parts changed, removed, copied or inserted."""
    pieces = (b",", b";", b"\t", b"\n", b"\r", b'"', b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"PK\x03\x04", b"1e400",
              b"nan", b"\xf0\x9f", b"\\ud800", b"[" * 500, b"9" * 500, b"x" * 200_000)  # fmt: skip
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(content) + 1)
        end = min(len(content), start + rng.randint(1, 60))
        match rng.randrange(5):
            case 0:
                content = content[:start] + content[end:]
            case 1:
                content = content[:start] + content[start:end] * rng.choice([2, 50]) + content[end:]
            case 2:
                content = content[:start]
            case 3:
                content = content[:start] + bytes(rng.randrange(256) for _ in range(end - start)) + content[end:]
            case _:
                content = content[:start] + rng.choice(pieces) + content[start:]
    return content


def judge_table(table: pd.DataFrame) -> None:
    """Check, analyze and report a table."""
    judge(tidy(table, "table"))


def judge_file(path: Path) -> None:
    """Read, analyze and report a file."""
    judge(load_results(path))


def judge(results: pd.DataFrame) -> None:
    """Analyze a table and make its report."""
    report = report_of_table(Path("scores.csv"), results, analyze(results, ANALYSES, allow_incomplete=True))
    with tempfile.TemporaryDirectory() as folder:
        write_report(replace(report, formats=("html", "markdown", "json")), Path(folder))


def attack_tables(number: int, seed: int) -> Tally:
    """Read, analyze and report mutated tables: from memory, CSV text, and Parquet."""
    tally = Tally("tables")
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for position in range(number):
            label = f"number {position} of seed {seed}"
            table = make_table(rng)
            mutated = mutate_table(table, rng)
            path = Path(folder) / rng.choice(["scores.csv", "scores.tsv", "scores.parquet"])
            match position % 4:
                case 0:
                    tally.attempt(label, partial(judge_table, mutated))
                    continue
                case 1 | 2 if path.suffix != ".parquet":
                    separator = "\t" if path.suffix == ".tsv" else ","
                    path.write_bytes(mutated.to_csv(sep=separator, index=rng.random() < 0.3).encode("utf-8", "replace"))
                    if position % 4 == 2:
                        path.write_bytes(mutate_bytes(path.read_bytes(), rng))
                case _:
                    path = path.with_suffix(".parquet")
                    try:
                        mutated.to_parquet(path)
                    except Exception:  # Parquet cannot store these cells
                        table.to_parquet(path)
                    if position % 8 == 3:
                        path.write_bytes(mutate_bytes(path.read_bytes(), rng))
            tally.attempt(label, partial(judge_file, path))
    return tally


def _content(name: str, rng: random.Random) -> bytes:
    """Return a valid data file."""
    rows = [(f"text {number} {rng.random()}", rng.choice(["a", "b", "c"])) for number in range(rng.randint(2, 40))]
    if name.endswith(".jsonl"):
        return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows).encode()
    if name.endswith(".parquet"):
        sink = pa.BufferOutputStream()
        texts, labels = zip(*rows, strict=True)
        pq.write_table(pa.table({"text": texts, "label": labels}), sink)
        return bytes(sink.getvalue())
    separator = "\t" if name.endswith(".tsv") else ","
    return "".join(f"{text}{separator}{label}\n" for text, label in (("text", "label"), *rows)).encode()


def special_files(folder: Path) -> dict[str, Callable[[], Any]]:
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


def attack_files(number: int, seed: int) -> Tally:
    """Read mutated data files."""
    tally = Tally("data files")
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        special = special_files(folder)
        for label, action in special.items():
            tally.attempt(label[:40], action)
        for position in range(number - len(special)):
            path = folder / rng.choice(["rows.csv", "rows.tsv", "rows.jsonl", "rows.parquet"])
            path.write_bytes(mutate_bytes(_content(path.name, rng), rng))
            forget()
            options: dict[str, Any] = {
                "path": path.name,
                **rng.choice(OPTIONS),
            }
            tally.attempt(
                f"{path.name}, number {position} of seed {seed}",
                partial(load_dataset, "files", options, folder=folder),
            )
    forget()
    return tally


def main() -> None:
    """Print how many inputs were accepted and refused; end with status 1 after any other outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tables", type=int, default=1500)
    parser.add_argument("--files", type=int, default=140)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    attack_tables(4, arguments.seed)  # imports plugins before the memory is limited
    limit_memory()
    tallies = attack_tables(arguments.tables, arguments.seed), attack_files(arguments.files, arguments.seed)
    print(*tallies, sep="\n")
    sys.exit(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    main()
