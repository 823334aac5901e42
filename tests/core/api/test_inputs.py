"""What an argument of a command means: a spec, a run by its name, spec or store, or a table of scores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import run_command

from peekbench.api.inputs import find_run, find_scores, find_spec
from peekbench.errors import PeekbenchError, RunWarning
from peekbench.execution.runner import run
from peekbench.spec.experiment import load_spec
from peekbench.store.files import MAGIC

SPEC = (
    "name: small\ntasks: [toy.words]\nmethods: [toy.vote]\ndesign: {num_train: 12, num_test: 30, num_subsamples: 3}\n"
)
STORE = Path("runs/small.sqlite")


@pytest.fixture(autouse=True)
def _files() -> None:
    for name, content in {
        "runs/small.sqlite": MAGIC,
        "runs/notes.txt": b"",
        "small.yaml": SPEC.encode(),
        "new.yaml": SPEC.replace("small", "new").encode(),
        "other.yaml": b"color: red\n",
        "latin.yaml": b"name: caf\xe9\n",
        "scores.csv": b"task,base,extra,test\n",
        "picture.dat": b"\x89PNG\r\n",
        "tree/m50/n200/model/task/accuracies.csv": b"",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    Path("small").mkdir()


@pytest.mark.parametrize("argument", ["small", "small.yaml", "runs/small.sqlite"])
def test_a_run_is_given_by_its_name_its_spec_or_its_store(argument: str) -> None:
    assert find_run(argument)[0] == find_scores(argument) == STORE


@pytest.mark.parametrize(
    ("find", "argument", "message"),
    [
        (find_run, "scores.csv", "the spec or the store of a run. `peekbench analyze scores.csv` analyzes a table"),
        (find_run, "runs", "runs is not a run; give the name"),
        (find_run, "new.yaml", "runs/new.sqlite does not exist; `peekbench run new.yaml` creates it"),
        (find_run, "small1", "no run of this name, as runs/small1.sqlite does not exist; did you mean small?"),
        (find_run, "nothing", "does not exist; the runs are: small"),
        (find_run, "smoll.yaml", "smoll.yaml: no such file or folder; did you mean small.yaml?"),
        (find_run, "x.yaml", "x.yaml: no such file or folder; `peekbench run SPEC` creates a run"),
        (find_run, "x.csv", "x.csv: no such file or folder; check the path"),
        (find_run, "a\x00b", "no run of this name"),
        (find_spec, "small", "small is a run, not a spec; give its spec"),
        (find_spec, "small.yml", "small.yml: no such file or folder; did you mean small.yaml?"),
    ],
)  # fmt: skip
def test_other_files_are_named_with_the_right_command(
    find: Callable[[Any], Path | None], argument: str, message: str
) -> None:
    with pytest.raises(PeekbenchError) as caught:
        find(argument)
    assert message in str(caught.value)
    assert "damaged" not in str(caught.value)


def test_scores_and_specs_are_accepted() -> None:
    assert find_scores("scores.csv") == Path("scores.csv")
    assert find_scores("tree") == Path("tree")
    assert find_spec(Path("small.yaml")) == Path("small.yaml")
    assert find_spec(Path("latin.yaml")) == Path("latin.yaml"), "reading it reports the error"
    os.mkfifo("pipe")
    assert find_spec(Path("pipe")) == Path("pipe"), "as in `peekbench run <(make_spec)`"


@pytest.mark.slow
def test_a_changed_spec_stands_for_its_run_with_a_warning(make_raw: Any) -> None:
    STORE.unlink()
    path = Path("small.yaml")
    path.write_text(yaml.safe_dump(make_raw(methods=["toy.constant"], tasks=["toy.words"])))
    run(load_spec(path))
    assert find_run("small.yaml")[0] == STORE
    path.write_text(yaml.safe_dump(make_raw(methods=["toy.vote"], tasks=["toy.words"], executor="local")))
    with pytest.warns(RunWarning, match=r"has changes since its run \(methods\).*`peekbench run small.yaml`"):
        assert find_run("small.yaml")[0] == STORE
    done = run_command("report", "small.yaml")
    assert (done.returncode, done.stderr.count("warning: small.yaml has changes since its run")) == (0, 1)


def test_all_rows_of_official_splits_are_no_change(make_raw: Any) -> None:
    STORE.unlink()
    for split in ("train", "test"):
        rows = [f"{word} {row} of {split},{word}" for row in range(20) for word in ("good", "bad")]
        Path(f"{split}.csv").write_text("\n".join(["text,label", *rows]))
    task = {"use": "files", "name": "words", "options": {"path": "train.csv", "test_path": "test.csv"}}
    raw = make_raw(methods=["toy.constant"], tasks=[task], arms=["base", "extra", "test", "all"], design="official")
    Path("official.yaml").write_text(yaml.safe_dump(raw))
    run(load_spec(Path("official.yaml")))
    with warnings.catch_warnings(action="error", category=RunWarning):
        assert find_run("official.yaml")[0] == STORE


def test_the_spec_of_an_extended_run_stands_for_it_and_resumes_it(make_raw: Any) -> None:
    STORE.unlink()
    for num_subsamples in (5, 6):
        design = {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples, "stop": {"at": ["equivalent"]}}
        Path("more.yaml").write_text(yaml.safe_dump(make_raw(design=design, methods=["toy.vote"])))
        for _ in range(2):  # the second one resumes it
            assert run(load_spec(Path("more.yaml"))).spec.design.num_subsamples == num_subsamples
        with warnings.catch_warnings(action="error", category=RunWarning):
            assert find_run("more.yaml")[0] == STORE
