"""Mutate the repository's specs at random and read them. Each must give a spec or a clear error, in bounded time."""

from __future__ import annotations

import copy
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from attack_tally import Budget, Tally

from peekbench.spec.analysis_only import is_analysis_only, load_analysis_only
from peekbench.spec.experiment import load_spec, make_spec

SPECS = Path(__file__).parent.parent / "specs"
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
                tally.attempt(label, lambda: load_analysis_only(path) if is_analysis_only(path) else load_spec(path))
            else:
                tally.attempt(label, partial(make_spec, mutate_values(values[name], rng), folder=Path(folder)))
    return tally
