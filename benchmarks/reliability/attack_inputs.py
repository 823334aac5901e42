"""Mutated and hostile inputs: specs, tables of scores, data files, and answers of a data server.

Each input must be read, or refused with a clear error, within limits of time and memory. Nothing may be written outside
of the named folders. The behaviors of the server are those of `tests/fixtures/hostile_hub.py`.
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from attack_tally import Budget, Tally

sys.path.append(str(Path(__file__).parents[2] / "tests" / "fixtures"))

from hostile_hub import BEHAVIORS, HostileHub, Outcome, attack, planted_files

from peekbench import load_dataset
from peekbench.data.loading import forget
from peekbench.report import report_of_table, write_report
from peekbench.results import load_results, tidy
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.spec.experiment import load_spec, make_spec, parse_spec
from peekbench_logs import import_logs

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


SPECS = Path(__file__).parents[2] / "specs"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, 0.0, -0.0, 0.5, 1e-300, 1e308, float("nan"), float("inf"),
    "", " ", ".", "..", "/", "~", "~nouser/x.csv", "../../etc/passwd", "a" * 2000, "\x00", "\x1b[31m", "\u202e",
    "\ufeff", "<script>", "{{7*7}}", "%s", "=1+1", "null", "true", "1e5", "0x10", "nan", "é", "😀", "summary",
    "classic.lsa", "files", "docstrings.all", "hf", "local", "mix", "base", "extra", "test", [], {}, [None], [[]],
    [[[[1]]]], {"": ""}, {"use": ""},
    {"use": "files", "options": {"path": "x"}}, {"mix": 0.5}, {"mix": -1}, {1: 2}, {None: None}, {True: False},
    [1, 1], [1, "1"], ["base"] * 300, list(range(500)), {f"k{number}": number for number in range(300)},
)  # fmt: skip
PIECES = (
    "&a ", "*a", "<<: *a", "!!python/object:os.system ", "!!binary ", "!!set ", "!!timestamp ", "[", "]", "{", "}",
    ": ", "- ", "? ", "| ", "> ", "'", '"', "#", "%", "@", "`", "\t", "\n", "\r", "\x00", "\ud800", "---\n", "...\n",
    "~", "1e400", "0o17", "1:30:00", "2026-01-01", "9" * 400, "[" * 200, "{a: " * 200, "x" * 5000,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values inside a value."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [place for key, item in items for place in ((*path, key), *places(item, (*path, key)))]


def mutate_values(raw: Any, rng: random.Random) -> Any:
    """Return a spec with one to three values replaced, removed, renamed, copied or nested."""
    raw = copy.deepcopy(raw)
    for _ in range(rng.randint(1, 3)):
        known = places(raw)
        if not known:
            break
        *path, last = rng.choice(known)
        parent = raw
        for step in path:
            parent = parent[step]
        match rng.randrange(6):
            case 0:
                del parent[last]
            case 1 if isinstance(parent, dict):
                parent[rng.choice(["", "use", "options", "path", f"{last}s", 1, None, "x" * 500])] = parent.pop(last)
            case 2 if isinstance(parent, list):
                parent += [copy.deepcopy(parent[last])] * rng.choice([1, 3, 300])
            case 3:
                parent[last] = [copy.deepcopy(parent[last])]
            case 4:
                parent[last] = {rng.choice(["use", "name", "x"]): copy.deepcopy(parent[last])}
            case _:
                parent[last] = copy.deepcopy(rng.choice(VALUES))
    return raw


def mutate_text(text: str, rng: random.Random) -> str:
    """Return the text of a spec with one to five pieces inserted, removed, copied, or turned into an alias list."""
    for _ in range(rng.randint(1, 5)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randint(1, 40))
        match rng.randrange(5):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + text[start:end] * rng.choice([2, 20]) + text[end:]
            case 2:
                levels, width = rng.randint(2, 30), rng.randint(2, 10)
                aliases = "".join(
                    f"z{level}: &z{level} [{', '.join([f'*z{level - 1}'] * width)}]\n" for level in range(1, levels)
                )
                text = f"z0: &z0 [{rng.choice(PIECES[:1]) and 'x'}]\n{aliases}" + text.replace(
                    "- ", f"- *z{levels - 1} # ", 1
                )
            case _:
                text = text[:start] + rng.choice(PIECES) + text[start:]
    return text


def specs(budget: Budget) -> Tally:
    """Read mutated specs, as texts and as plain values."""
    tally = Tally("specs")
    rng = random.Random(budget.seed)
    texts = {path.stem: path.read_text("utf-8") for path in sorted(SPECS.rglob("*.yaml"))}
    values = {name: yaml.safe_load(text) for name, text in texts.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.yaml"
        for position in budget:
            name = rng.choice(sorted(texts))
            label = f"{name}, number {position} of seed {budget.seed}"
            if position % 2:
                path.write_bytes(mutate_text(texts[name], rng).encode("utf-8", "surrogatepass"))
                tally.attempt(label, lambda: load_spec(path))
            else:
                tally.attempt(label, partial(make_spec, mutate_values(values[name], rng), folder=Path(folder)))
    return tally


ANALYSES = ("summary", "permutation", "consistency")
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


def judge_table(table: pd.DataFrame) -> None:
    """Check, analyze and report a table."""
    judge(tidy(table, "table"))


def judge_file(path: Path) -> None:
    """Read, analyze and report a file."""
    judge(load_results(path))


def judge(results: pd.DataFrame) -> None:
    """Analyze a table and make its report."""
    report = report_of_table(analyze(results, AnalysisOptions(ANALYSES, allow_incomplete=True, origin="scores.csv")))
    with tempfile.TemporaryDirectory() as folder:
        write_report(replace(report, formats=("html", "markdown", "json")), Path(folder))


def tables(budget: Budget) -> Tally:
    """Read, analyze and report mutated tables: from memory, CSV text, and Parquet."""
    tally = Tally("tables")
    rng = random.Random(budget.seed)
    with tempfile.TemporaryDirectory() as folder:
        for position in budget:
            label = f"number {position} of seed {budget.seed}"
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


LOGS = Path(__file__).parents[2] / "tests" / "fixtures" / "logs"


def logs(budget: Budget) -> Tally:
    """Import mutated logs of lm-evaluation-harness and Inspect."""
    tally = Tally("logs")
    rng = random.Random(budget.seed)
    for position in budget:
        tool, source = rng.choice([("lm-eval", LOGS / "lm_eval"), ("inspect", LOGS / "inspect")])
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(source, folder, dirs_exist_ok=True)
            log = rng.choice([path for path in sorted(Path(folder).rglob("*.json*")) if path.parent.name != "lm_eval"])
            log.write_bytes(mutate_log(log.read_bytes(), rng))
            arms = [(arm, next(path for path in sorted(Path(folder).glob(f"{arm}*")))) for arm in ("extra", "test")]
            metrics = ["acc", "exact_match,first"] if tool == "lm-eval" else [rng.choice(["choice", "parts,length"])]
            label = f"{log.name}, number {position} of seed {budget.seed}"
            tally.attempt(label, partial(import_logs, tool, arms, metrics=metrics))
    return tally


def mutate_log(content: bytes, rng: random.Random) -> bytes:
    """Return lines of JSON with mutated values, or mutated bytes."""
    if rng.random() < 0.3:
        return mutate_bytes(content, rng)
    try:
        return json.dumps(mutate_values(json.loads(content), rng)).encode()
    except ValueError:  # several lines
        lines = content.splitlines(keepends=True)
        number = rng.randrange(len(lines))
        lines[number] = json.dumps(mutate_values(json.loads(lines[number]), rng)).encode() + b"\n"
        return b"".join(lines)


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


def spec_bombs() -> dict[str, Action]:
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
        actions = {**special_files(folder), **spec_bombs(), **bombs(folder)}
        labels = list(actions)
        for position in Budget(min(len(labels), budget.number), seconds=budget.seconds):
            tally.attempt(labels[position][:40], actions[labels[position]])
    forget()
    return tally


PROCESSES = 4


def hub(budget: Budget) -> Tally:
    """Load one dataset for each behavior, in processes of their own."""
    tally = Tally("hub")
    names = list(BEHAVIORS)[: budget.number]
    with HostileHub() as server, tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(PROCESSES) as pool:

        def load(behavior: str) -> tuple[Outcome, list[Path]]:
            home = Path(name, behavior)
            (outcome,) = attack([behavior], home, server, timeout=1)
            return outcome, planted_files(home)

        batches = [names[start : start + PROCESSES] for start in range(0, len(names), PROCESSES)]
        for position in Budget(len(batches), seconds=budget.seconds):
            for outcome, planted in pool.map(load, batches[position]):
                found = f"{outcome.result} after {outcome.seconds:.1f} s with {outcome.peak / 1e6:.0f} MB"
                problems = [] if outcome.is_good() else [f"{found}: {outcome.message}"]
                problems += [f"planted {path}" for path in planted]
                tally.add(outcome.name, problems, refused=True)
        tally.defects += [f"the access token was sent to {host}" for host in server.leaked]
    return tally
