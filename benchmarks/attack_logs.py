"""Import malformed logs of other tools. Each must be read, or refused, within limits of time and memory."""

from __future__ import annotations

import copy
import json
import os
import random
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attack_files import mutate_bytes
from attack_tally import Budget, Tally

from peekbench.results.logs import import_logs

TIME = "2026-01-01T00-00-00.0"
LARGE = 2**26  # bytes
CELLS: tuple[Any, ...] = (
    None, "", "x", "nan", True, -1, 0.5, 1e308, float("nan"), float("inf"), 10**4000, [], [1], {}, {"a": None}, "\x00",
    "x" * 10_000, "../../x", "C", "\x1b[2J", -(2**64),
)  # fmt: skip
Content = dict[str, Any]


def lm_eval_contents() -> tuple[Content, list[Content]]:
    """Return the results and the lines of a small log of lm-evaluation-harness."""
    lines = [
        {"doc_id": text, "filter": "none", "metrics": ["acc"], "doc_hash": str(text), "acc": text % 2}
        for text in range(6)
    ]
    results = {
        "results": {"news": {"alias": "news", "acc,none": 0.5}}, "group_subtasks": {"news": []},
        "n-shot": {"news": 0}, "versions": {"news": 1}, "higher_is_better": {"news": {"acc": True}},
    }  # fmt: skip
    return results, lines


def inspect_contents() -> tuple[Content, list[Content]]:
    """Return the header and the samples of a small log of Inspect."""
    samples = [
        {"id": text, "epoch": 1, "input": f"text {text}", "target": "1", "scores": {"match": {"value": "CI"[text % 2]}}}
        for text in range(6)
    ]
    scores = [{"name": "match", "scorer": "match", "metrics": {"accuracy": {"name": "accuracy", "value": 0.5}}}]
    evaluation = {"task": "news", "task_version": 0, "task_args": {}}
    return {"status": "success", "eval": evaluation, "results": {"completed_samples": 6, "scores": scores}}, samples


def write(tool: str, folder: Path, header: Any, rows: Any, *, as_json: bool = False) -> Path:
    """Write a log, and return what `import_logs` takes."""
    folder.mkdir(parents=True)
    if tool == "lm-eval":
        (folder / f"results_{TIME}.json").write_text(json.dumps(header))
        (folder / f"samples_news_{TIME}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder
    if as_json:
        (folder / "log.json").write_text(
            json.dumps({**header, "samples": rows} if isinstance(header, dict) else header)
        )
        return folder / "log.json"
    with zipfile.ZipFile(folder / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        for number, row in enumerate(rows):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(row))
    return folder / "log.eval"


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Iterate over the containers in JSON with each of their keys."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield content, key
        if isinstance(value, dict | list):
            yield from places(value)


def mutate(rng: random.Random, tool: str, folder: Path) -> Path:
    """Return a log with a random change of its values, its keys or its bytes."""
    header, rows = map(copy.deepcopy, lm_eval_contents() if tool == "lm-eval" else inspect_contents())
    for _ in range(rng.randint(1, 3)):
        container, key = rng.choice([*places(header), *places(rows)])
        if not isinstance(container, dict) or rng.random() < 0.7:
            container[key] = rng.choice(CELLS)
        elif rng.random() < 0.5:
            container.pop(key, None)
        else:
            container[rng.choice(["", "acc", "id", "value", "filter"])] = rng.choice(CELLS)
    path = write(tool, folder, header, [row for row in rows if rng.random() < 0.95], as_json=rng.random() < 0.5)
    if rng.random() < 0.3:
        file = rng.choice([file for file in folder.iterdir() if file.is_file()])
        file.write_bytes(mutate_bytes(file.read_bytes(), rng))
    return path


def traps(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Iterate over logs that stand for much more, or are no files: label, tool and path."""
    header, rows = lm_eval_contents()
    os.mkfifo(folder / "pipe.json")
    (folder / "loop.json").symlink_to("loop.json")
    for tool in ("lm-eval", "inspect"):
        yield f"{tool}: a pipe", tool, folder / "pipe.json"
        yield f"{tool}: a link to itself", tool, folder / "loop.json"
        yield f"{tool}: a device", tool, Path("/dev/zero")
        yield f"{tool}: no file", tool, folder / "no-such-file"
        yield f"{tool}: an empty folder", tool, folder
    for name, text in (
        ("deep", "[" * 100_000),
        ("large", '{"a": "' + "x" * LARGE),
        ("wide", '{"a": [' + "[]," * 2**22),
    ):
        path = write("lm-eval", folder / name, header, rows)
        (path / f"samples_news_{TIME}.jsonl").write_text(text)
        yield f"lm-eval: {name} line", "lm-eval", path
        path = write("lm-eval", folder / f"{name} results", header, rows)
        (path / f"results_{TIME}.json").write_text(text)
        yield f"lm-eval: {name} results", "lm-eval", path
        (folder / f"{name}.json").write_text(text)
        yield f"inspect: {name} JSON", "inspect", folder / f"{name}.json"
        with zipfile.ZipFile(folder / f"{name}.eval", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps(inspect_contents()[0]))
            for number in range(4):
                archive.writestr(f"samples/{number}_epoch_1.json", text)
        yield f"inspect: {name} samples", "inspect", folder / f"{name}.eval"


def logs(budget: Budget) -> Tally:
    """Import intact logs, the traps, then mutated logs."""
    tally, rng = Tally("logs"), random.Random(budget.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        intact = {
            tool: write(
                tool, folder / f"intact {tool}", *(lm_eval_contents() if tool == "lm-eval" else inspect_contents())
            )
            for tool in ("lm-eval", "inspect")
        }

        def read(tool: str, path: Path) -> Callable[[], Any]:
            return lambda: import_logs(tool, [("extra", path), ("test", intact[tool])])

        for tool in intact:
            header, rows = lm_eval_contents() if tool == "lm-eval" else inspect_contents()
            other = write(tool, folder / f"other {tool}", {**header, "date": "2026-01-02"}, rows)
            tally.attempt(f"{tool}: intact", read(tool, other))
        (folder / "traps").mkdir()
        tried = len(intact)
        for label, tool, path in traps(folder / "traps") if budget.number > 10 else ():
            tally.attempt(label, read(tool, path))
            tried += 1
        for number in Budget(max(budget.number - tried, 0), seconds=budget.seconds):
            tool = rng.choice(["lm-eval", "inspect"])
            tally.attempt(f"{tool} {number}", read(tool, mutate(rng, tool, folder / f"{number}")))
    return tally
