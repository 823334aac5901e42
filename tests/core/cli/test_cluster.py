"""The commands `worker` and `merge`: shards add up to a run, and nothing else is merged."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from commands import run_command

from peekbench.cli.cluster import _describe_missing, list_ranges
from peekbench.execution.merging import MergeSummary
from peekbench.execution.shards import shard_items
from peekbench.records.trials import ArmResult, TrialFailure, TrialResult
from peekbench.spec.compatibility import Experiment
from peekbench.spec.experiment import ExperimentSpec, load_spec
from peekbench.store.fragments import Fragment, FragmentWriter, Header, Shard
from peekbench.store.merging import MergeCounts
from peekbench.store.writer import Store

OUT = Path("out")
SPEC = Path("small.yaml")
BOLD = {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}  # shares its base arm with toy.vote
ARMS = ("base", "extra", "test")
Outcome = TrialResult | TrialFailure


def write_spec(make_raw: Callable[..., dict[str, Any]], **parts: Any) -> None:
    methods = ["toy.vote", BOLD, "toy.constant"]
    SPEC.write_text(yaml.safe_dump(make_raw(**{"methods": methods, "analyses": ["toy.count"], **parts})))


def work(shard: str, *arguments: str) -> str:
    done = run_command("worker", str(SPEC), "--shard", shard, "--out", str(OUT), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def merge(*arguments: Path | str, status: int = 0) -> str:
    done = run_command("merge", str(SPEC), *map(str, arguments or [OUT]))
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def refuse(*arguments: str) -> str:
    done = run_command(*arguments)
    assert done.returncode == 2
    return done.stderr


def contents(path: Path = Path("runs/small.sqlite")) -> tuple[dict[str, list[Any]], list[bytes]]:
    """Return all results of a store except times, and every prediction."""
    with Store.open(path) as store:
        columns = {name: values for name, values in store.result_columns().items() if not name.endswith("seconds")}
        trials = sorted(store.done(), key=str)
        return columns, [
            store.predictions(trial)[arm].tobytes() for trial in trials for arm in ("base", "extra", "test")
        ]


@pytest.fixture(scope="module")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec, its run, and the fragments of its two shards."""
    return tmp_path_factory.mktemp("finished")


@pytest.fixture
def finished(_finished: Path, make_raw: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of `_finished` in the working folder."""
    if not (_finished / SPEC).exists():
        with monkeypatch.context() as patch:
            patch.chdir(_finished)
            write_spec(make_raw)
            assert run_command("run", str(SPEC)).returncode == 0
            Path("runs/small.sqlite").rename("whole.sqlite")
            for shard in ("1/2", "2/2"):
                work(shard)
    shutil.copytree(_finished, Path(), dirs_exist_ok=True)


def fragments() -> list[Fragment]:
    return [Fragment(path) for path in sorted(OUT.iterdir())]


def outcomes(fragment: Fragment) -> list[Outcome]:
    return [event for event in fragment.events() if isinstance(event, TrialResult | TrialFailure)]


def rewrite(fragment: Fragment, changed: Sequence[Outcome], header: Header | None = None) -> Path:
    """Write another fragment with the header of one."""
    header = header or fragment.read_header()
    assert header is not None
    with FragmentWriter.create(OUT, header) as writer:
        writer.save(*changed)
    return writer.path


def make_failure(outcome: Outcome) -> TrialFailure:
    return TrialFailure(outcome.trial, "ValueError: lost", "Traceback", outcome.host)


@pytest.mark.usefixtures("finished")
def test_merged_shards_are_bit_equal_to_a_run() -> None:
    assert "0 trials added" in merge(str(fragments()[0].path), "--store", "whole.sqlite")
    assert "trials are missing, in shard 2 of 2" in merge(fragments()[0].path, "--store", "half.sqlite", status=3)
    output = merge()
    assert "merged 2 fragments into runs/small.sqlite: 18 trials added" in output
    assert "peekbench report small" in output
    assert contents() == contents(Path("whole.sqlite"))
    with Store.open("runs/small.sqlite") as store:
        assert [session["shard"] for session in store.sessions()] == ["1/2", "2/2"]
        assert [host["trials"] for host in store.hosts()] == store.session_sizes()
        assert store.texts().keys() == {"a", "b"}
        identifier = store.identifier()
    with Store.open("whole.sqlite") as whole:
        assert whole.identifier() == identifier
    assert "0 trials added, 18 were already stored with the same numbers" in merge()
    assert contents() == contents(Path("whole.sqlite"))
    assert run_command("check-store", "small").returncode == 0


@pytest.mark.usefixtures("finished")
def test_a_restarted_job_computes_only_what_is_missing() -> None:
    first, _ = fragments()
    expected = contents(Path("whole.sqlite"))
    num_trials = len(outcomes(first))
    kept = first.path.read_bytes().splitlines(keepends=True)[:4]
    first.path.write_bytes(b"".join(kept)[:-10])  # a header, two trials, and a part of a third
    missing = num_trials - 2
    output = merge(status=3)
    assert f"{missing} of 18 trials are missing, in shard 1 of 2" in output
    assert f"peekbench worker {SPEC} --shard 1/2 --out {OUT}" in output
    assert f"shard 1/2: {missing} trials finished, 2 were in {OUT} already" in work("1/2")
    assert f"all {missing + 2} trials of shard 1/2 are in {OUT}" in work("1/2")
    assert len(fragments()) == 3
    output = merge()
    assert f"{missing} trials added" in output
    assert contents() == expected


def change_prediction(arm: ArmResult) -> ArmResult:
    predictions = arm.predictions.copy()
    predictions[0, 0] = np.nextafter(predictions[0, 0], np.float32(1))
    return replace(arm, predictions=predictions)


@pytest.mark.usefixtures("finished")
def test_a_trial_with_other_numbers_is_refused_with_both_files() -> None:
    first, _ = fragments()
    result = outcomes(first)[0]
    assert isinstance(result, TrialResult)
    base, *_, test = result.arms
    kept = result.arms[:-1]
    changes = {
        "the predictions of the arm test": replace(result, arms=(*kept, change_prediction(test))),
        "the predictions of the arm base": replace(result, arms=(change_prediction(base), *result.arms[1:])),
        "the brier of the arm test": replace(result, arms=(*kept, replace(test, scores={**test.scores, "brier": 0.5}))),
        "the test rows": replace(result, test_rows=result.test_rows[::-1]),
        "the test labels": replace(result, test_labels=(result.test_labels + 1) % 3),
    }
    merge(first.path, status=3)
    for what, changed in changes.items():
        path = rewrite(first, [changed])
        error = refuse("merge", str(SPEC), str(path))
        assert f"{path}: {what}" in error
        assert f"of {result.trial} differ from those in the fragment {first.path.name}" in error
        path.unlink()
    other = rewrite(first, [changes["the test rows"]])
    assert "differ from those in the store whole.sqlite" in refuse(
        "merge", str(SPEC), str(other), "--store", "whole.sqlite"
    )
    error = refuse("merge", str(SPEC), str(OUT), "--store", "new.sqlite")
    assert "differ from those in the fragment shard-" in error
    assert "from 1 of 3 fragments" in error
    with Store.open("new.sqlite") as store:
        assert f"Stored before this error: {len(store.done())} trial" in error


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("is_success_first", [True, False])
def test_a_failure_gives_way_to_a_success(is_success_first: bool) -> None:
    expected = contents(Path("whole.sqlite"))
    first, _ = fragments()
    failed = rewrite(first, [make_failure(outcome) for outcome in outcomes(first)])
    order = [first.path, failed] if is_success_first else [failed, first.path]
    for path in order:
        assert "18 trials are missing" in merge(path, status=3)
    merge()
    assert contents() == expected
    with Store.open("runs/small.sqlite") as store:
        assert not store.failures()


@pytest.mark.usefixtures("finished")
def test_fragments_of_other_experiments_are_refused(make_raw: Callable[..., dict[str, Any]]) -> None:
    first, _ = fragments()
    header = first.read_header()
    assert header is not None
    experiment = header.experiment
    session = dict(header.session)

    def of(**parts: Any) -> Experiment:
        return replace(experiment, **parts)

    weights = {"methods": {"toy.vote": {"sha256": {"weights": "1" * 64}}}}
    headers = {
        "seed: 8 before, 7 now": replace(header, experiment=of(spec={**experiment.spec, "seed": 8})),
        "data of task a: fingerprint 0 before": replace(
            header, experiment=of(tasks={**experiment.tasks, "a": {**experiment.tasks["a"], "fingerprint": "0"}})
        ),
        r"numpy: version (0|\S+ in .*, 0) in shard-": replace(
            header, session={**session, "versions": {**session["versions"], "numpy": "0"}}
        ),
        "peekbench: other source files ": replace(header, session={**session, "core": "0"}),
        "weights has the SHA-256 (1{12}|2{12}) in shard-": replace(
            header, session={**session, "methods": {"toy.vote": {"sha256": {"weights": "2" * 64}}}}
        ),
    }
    rewrite(first, [], replace(header, session={**session, **weights}))
    for message, changed in headers.items():
        path = rewrite(first, [], changed)
        for command in (["merge", str(SPEC), str(OUT)], ["worker", str(SPEC), "--shard", "1/2", "--out", str(OUT)]):
            if "SHA-256" not in message or command[0] == "merge":
                error = refuse(*command)
                assert re.search(message, error)
                assert path.name in error
        path.unlink()
    assert not Path("runs/small.sqlite").exists()


@pytest.mark.usefixtures("finished")
def test_changed_code_is_refused_unless_it_is_allowed() -> None:
    """The code of the jobs is that of this machine; here, the header of one of them says otherwise."""
    _, second = fragments()
    header = second.read_header()
    assert header is not None
    code = {plugin: {"sha256": "0", "files": {"changed.py": "0"}} for plugin in header.session["code"]}
    changed = replace(header, session={**header.session, "code": code})
    other = rewrite(second, outcomes(second), changed)
    assert f"the fragments in {OUT} differ from each other" in refuse(
        "worker", str(SPEC), "--shard", "2/2", "--out", str(OUT)
    )
    second.path.unlink()
    for command in (["merge", str(SPEC), str(OUT)], ["worker", str(SPEC), "--shard", "2/2", "--out", str(OUT)]):
        error = refuse(*command)
        assert "plugin toy: changed.py" in error
        assert "--allow-changed-code" in error
    assert "nothing to do" in work("2/2", "--allow-changed-code")
    done = run_command("merge", str(SPEC), str(OUT), "--allow-changed-code")
    assert done.returncode == 0
    assert "warning: plugin toy: changed.py" in done.stderr
    assert contents() == contents(Path("whole.sqlite"))
    result = next(outcome for outcome in outcomes(Fragment(other)) if isinstance(outcome, TrialResult))
    other.unlink()
    error = refuse("merge", str(SPEC), str(OUT))
    assert "trials in the store runs/small.sqlite are of other code or versions" in error
    assert "--store" in error
    other = rewrite(second, [replace(result, test_rows=result.test_rows[::-1])], changed)
    error = refuse("merge", str(SPEC), str(OUT), "--allow-changed-code")
    assert "code or versions differ, and numbers too:\n  plugin toy: changed.py" in error
    assert f"{other}: the test rows" in error


@pytest.mark.usefixtures("finished")
def test_an_extended_spec_merges_the_fragments_of_the_old_one(make_raw: Callable[..., dict[str, Any]]) -> None:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 4}
    raw = make_raw()
    bold = {**BOLD, "by_task": {"c": {"trust": 2}}}
    task = {"use": "toy.words", "name": "c"}
    write_spec(make_raw, tasks=[*raw["tasks"], task], methods=["toy.constant", "toy.vote", bold])
    assert "toy.vote and bold no longer share their base arm" in refuse("merge", str(SPEC), str(OUT))
    write_spec(make_raw, design=design, methods=["toy.constant", "toy.vote", BOLD])
    output = merge(status=3)
    assert "18 trials added" in output
    assert "6 of 24 trials are missing" in output
    work("1/3")
    work("2/3")
    work("3/3")
    assert "6 trials added, 18 were already stored" in merge()


@pytest.mark.usefixtures("finished")
def test_wrong_arguments_are_refused(make_raw: Callable[..., dict[str, Any]]) -> None:
    assert "give the number of the shard and of all shards" in refuse("worker", str(SPEC), "--shard", "1", "--out", "x")
    assert "add 1 to numbers that start at 0: 1/2" in refuse("worker", str(SPEC), "--shard", "0/2", "--out", "x")
    assert f"{SPEC} is not a folder" in refuse("worker", str(SPEC), "--shard", "1/2", "--out", str(SPEC))
    Path("empty").mkdir()
    assert "no fragments in empty" in refuse("merge", str(SPEC), "empty")
    assert "missing: No such file or directory; give a folder" in refuse("merge", str(SPEC), "missing")
    assert f"{SPEC} is not a folder of fragments" in refuse("merge", str(SPEC), str(SPEC))
    (OUT / "damaged.jsonl").write_bytes(fragments()[0].path.read_bytes().replace(b'"arm":"test"', b'"arm":"best"', 1))
    error = refuse("merge", str(SPEC), str(OUT))
    assert "damaged.jsonl, line 2: damaged" in error
    assert "No trial was added" in error
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 3, "stop": {"looks": 2}}
    write_spec(make_raw, design=design, analyses=["summary"])
    error = refuse("worker", str(SPEC), "--shard", "1/2", "--out", "x")
    assert "design.stop: a shard cannot take planned looks" in error


@pytest.mark.usefixtures("finished")
def test_more_shards_than_work_items() -> None:
    """Fragments of other numbers of shards are read, so nothing is computed again."""
    numbers = [number for number, _ in shard_items(load_spec(SPEC), 13)]
    (without_items,) = set(range(1, 14)).difference(numbers)
    assert "has no trials, because the spec has fewer work items" in work(f"{without_items}/13")
    assert "nothing to do: all" in work(f"{numbers[0]}/13")


def test_failed_trials_are_counted_and_tried_again(make_raw: Callable[..., dict[str, Any]]) -> None:
    faulty = {"use": "toy.faulty", "name": "faulty", "options": {"marker": "marker"}}
    options = {"error": "raise", "message": "down"}
    write_spec(
        make_raw,
        methods=["toy.constant", {**faulty, "options": options}],
        design={"num_train": 12, "num_test": 30, "num_subsamples": 12},
    )
    done = run_command("worker", str(SPEC), "--shard", "1/1", "--out", str(OUT))
    assert done.returncode == 3
    assert "10 trials failed" in done.stderr
    assert "its other 14 trials were not tried" in done.stderr
    merged = run_command("merge", str(SPEC), str(OUT))
    assert merged.returncode == 3
    assert (
        "24 of 48 trials are missing (10 of them failed; the store has all tracebacks), in shard 1 of 1"
        in merged.stderr
    )
    with Store.open("runs/small.sqlite") as store:
        assert {failure.error.partition(" (")[0] for failure in store.failures()} == {"RuntimeError: down"}
    again = run_command("worker", str(SPEC), "--shard", "1/1", "--out", str(OUT), "--keep-going")
    assert again.returncode == 3
    assert "24 trials failed" in again.stderr


def test_shards_are_balanced(make_spec: Callable[..., ExperimentSpec]) -> None:
    """The plan has four items for each subsample. Four shards still have each kind of item equally often."""
    spec = make_spec(design={"num_train": 12, "num_test": 30, "num_subsamples": 50})
    counts = np.zeros((4, 4))
    for position, (number, _) in enumerate(shard_items(spec, 4)):
        counts[number - 1, position % 4] += 1
    assert (counts.sum(axis=1) == 50).all()
    assert counts.min() >= 5
    numbers = [number for number, _ in shard_items(spec, 7)]
    assert all(len(set(numbers[start : start + 7])) == 7 for start in range(0, 196, 7))


def test_one_missing_trial_is_in_singular() -> None:
    message = _describe_missing(MergeSummary(OUT, 1, 0, MergeCounts(), 80, {Shard(1, 2): 1}), SPEC, OUT, None)
    assert message.startswith("1 of 80 trials is missing, in shard 1 of 2\n")


def test_numbers_of_shards_are_listed_as_ranges() -> None:
    assert list_ranges([1]) == "1"
    assert list_ranges([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
