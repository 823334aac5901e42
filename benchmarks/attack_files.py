"""Mutate data files at random. Each must be read by the data source `files` or give a clear error, in bounded time."""

from __future__ import annotations

import json
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attack_tally import Budget, Tally

from peekbench import load_dataset
from peekbench.data.loading import forget

OPTIONS: tuple[dict[str, Any], ...] = ({}, {"drop_missing": True}, {"quote": ""}, {"encoding": "latin-1"})


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


def files(budget: Budget) -> Tally:
    """Read mutated data files."""
    tally = Tally("data files")
    rng = random.Random(budget.seed)
    with tempfile.TemporaryDirectory() as name:
        for position in budget:
            path = Path(name, rng.choice(["rows.csv", "rows.tsv", "rows.jsonl", "rows.parquet"]))
            path.write_bytes(mutate_bytes(_content(path.name, rng), rng))
            forget()
            tally.attempt(
                f"{path.name}, number {position} of seed {budget.seed}",
                partial(load_dataset, "files", {"path": path.name, **rng.choice(OPTIONS)}, folder=Path(name)),
            )
    forget()
    return tally
