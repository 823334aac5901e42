"""The commands `worker` and `merge`: shards add up to a run, and nothing else is merged."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from commands import run_command

from peekbench.execution.shards import run_shard, shard_items
from peekbench.records.runs import TrialFinished
from peekbench.spec.experiment import ExperimentSpec, load_spec
from peekbench.store.files import Shard
from peekbench.store.reader import Store
from peekbench.store.schema import add_triggers, hash_bytes

OUT = Path("out")
SPEC = Path("small.yaml")
BOLD = {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}  # shares its base arm with toy.vote
FAIL = ["UPDATE trials SET error = 'ValueError: lost', traceback = 'Traceback'", "DELETE FROM arms",
        "DELETE FROM predictions", "UPDATE draws SET test_labels = NULL, test_rows = NULL"]  # fmt: skip
FIRST_ARM = "WHERE id = (SELECT min(id) FROM arms WHERE arm = '{}')"


class Interrupted:
    """Display of a job that is interrupted as soon as a trial is saved."""

    def trial_finished(self, event: TrialFinished) -> None:
        """Interrupt the job."""
        raise KeyboardInterrupt


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
            store.predictions(trial)[arm].numbers.tobytes() for trial in trials for arm in ("base", "extra", "test")
        ]


@pytest.fixture(scope="module")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec, its run, and the stores of its two shards."""
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


def shards() -> list[Path]:
    return sorted(OUT.iterdir())


def count_trials(path: Path) -> int:
    with Store.open(path) as store:
        return len(store.done())


def rewrite(path: Path, *statements: str) -> Path:
    """Write another store of the same shard, with changes that have right checksums."""
    copy = Path(shutil.copy(path, path.with_stem(f"{path.stem}-{secrets.token_hex(16)}")))
    with closing(sqlite3.connect(copy)) as connection:
        add_triggers(connection)
        connection.create_function("hash", 1, hash_bytes)
        connection.execute("UPDATE seal SET store = ?", (secrets.token_hex(16),))
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return copy


def set_session(part: str, value: object) -> str:
    """Return a statement that changes a part of the provenance."""
    return f"UPDATE sessions SET provenance = json_set(provenance, '$.{part}', json('{json.dumps(value)}'))"


@pytest.mark.usefixtures("finished")
def test_merged_shards_are_bit_equal_to_a_run() -> None:
    assert "0 trials added" in merge(str(shards()[0]), "--store", "whole.sqlite")
    assert "trials missing, in 1 shard of 2" in merge(shards()[0], "--store", "half.sqlite", status=3)
    output = merge()
    assert "merged 2 stores of shards into runs/small.sqlite: 18 trials added" in output
    assert "peekbench report small" in output
    assert contents() == contents(Path("whole.sqlite"))
    with Store.open("runs/small.sqlite") as store:
        assert [session["shard"] for session in store.sessions()] == ["1/2", "2/2"]
        assert [host["trials"] for host in store.hosts()] == store.session_sizes()
        assert store.texts().keys() == {"a", "b"}
        identifier = store.identifier()
    with Store.open("whole.sqlite") as whole:
        assert whole.identifier() == identifier
    assert "0 trials added, 18 already stored with the same numbers" in merge()
    assert contents() == contents(Path("whole.sqlite"))
    assert run_command("check-store", "small").returncode == 0


@pytest.mark.usefixtures("finished")
def test_a_restarted_job_computes_only_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = shards()
    expected = contents(Path("whole.sqlite"))
    num_trials = count_trials(first)
    first.unlink()
    monkeypatch.setattr("peekbench_local.executor.BATCH_WINDOW", 0.0)  # saves each trial before the next one
    spec = load_spec(SPEC).with_executor_options(workers=1, in_process=True)
    with pytest.raises(KeyboardInterrupt):
        run_shard(spec, Shard(1, 2), OUT, display=Interrupted())
    kept = count_trials(shards()[0])
    missing = num_trials - kept
    assert missing
    output = merge(status=3)
    assert re.search(rf"{missing} of 18 trials missing, in 1 shard of 2", output)
    assert f"peekbench worker {SPEC} --shard 1/2 --out {OUT}" in output
    assert re.search(rf"shard 1/2: {missing} trials? finished, {kept} were in {OUT} already", work("1/2"))
    assert f"all {num_trials} trials of shard 1/2 are in {OUT}" in work("1/2")
    assert len(shards()) == 3
    output = merge()
    assert re.search(rf": {missing} trials? added", output)
    assert contents() == expected
    with Store.open("runs/small.sqlite") as store:
        assert len(store.sessions()) == 3


@pytest.mark.usefixtures("finished")
def test_a_trial_with_other_numbers_is_refused_with_both_files() -> None:
    first, _ = shards()
    predictions = "UPDATE predictions SET numbers = randomblob(length(numbers)) WHERE arm = (SELECT id FROM arms {})"
    content = "hash(CAST(numbers || labels AS BLOB))"
    checksum = f"UPDATE arms SET predictions_checksum = (SELECT {content} FROM predictions WHERE arm = arms.id)"
    changes = {
        "predictions of arm test of task a": [predictions.format(FIRST_ARM.format("test")), checksum],
        "predictions of arm base of task a": [predictions.format(FIRST_ARM.format("base")), checksum],
        "brier of arm test of task a": [f"UPDATE arms SET brier = 0.5 {FIRST_ARM.format('test')}"],
        "the test rows or labels of": ["UPDATE draws SET test_rows = randomblob(length(test_rows)) WHERE id = 1"],
    }
    merge(first, status=3)
    for what, statements in changes.items():
        path = rewrite(first, *statements)
        error = refuse("merge", str(SPEC), str(path))
        assert f"{path}: {what}" in error
        assert re.search(r" task a.*, subsample 0.* differ from those in the store runs/small.sqlite", error)
        path.unlink()
    rewrite(first, *changes["brier of arm test of task a"])
    error = refuse("merge", str(SPEC), str(OUT), "--store", "new.sqlite")
    assert "1 shard of 3 before it remain merged" in error
    assert count_trials(Path("new.sqlite")) == count_trials(first)


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("is_success_first", [True, False])
def test_a_failure_gives_way_to_a_success(is_success_first: bool) -> None:
    expected = contents(Path("whole.sqlite"))
    first, _ = shards()
    failed = rewrite(first, *FAIL)
    order = [first, failed] if is_success_first else [failed, first]
    for path in order:
        assert "18 trials missing" in merge(path, status=3)
    merge()
    assert contents() == expected
    with Store.open("runs/small.sqlite") as store:
        assert not store.failures()
    assert run_command("check-store", "small").returncode == 0


@pytest.mark.usefixtures("finished")
def test_shards_of_other_experiments_are_refused() -> None:
    first, _ = shards()

    def weights(digit: str) -> str:
        return set_session("methods", {"toy.vote": {"sha256": {"weights": digit * 64}}})

    changes = {
        "seed: 8 before, 7 now": "UPDATE run SET value = json_set(value, '$.seed', 8) WHERE key = 'spec'",
        "data of task a: fingerprint 0 before": (
            "UPDATE tasks SET data = json_set(data, '$.fingerprint', '0') WHERE name = 'a'"
        ),
        r"numpy: (0 instead|\S+ instead of 0) .*in shard-": set_session("versions.numpy", "0"),
        "plugin peekbench: ": set_session("code.peekbench", {"a.py": "0"}),
        "files of methods differ: method toy.vote: weights changed .in shard-": weights("2"),
    }
    rewrite(first, weights("1"))
    for message, statement in changes.items():
        path = rewrite(first, statement)
        for command in (["merge", str(SPEC), str(OUT)], ["worker", str(SPEC), "--shard", "1/2", "--out", str(OUT)]):
            if "weights" not in message or command[0] == "merge":
                error = refuse(*command)
                assert re.search(message, error)
                assert path.name in error
        path.unlink()
    assert not Path("runs/small.sqlite").exists()


@pytest.mark.usefixtures("finished")
def test_changed_code_is_refused_unless_it_is_allowed() -> None:
    """The code of the jobs is that of this machine; here, the store of one of them says otherwise."""
    _, second = shards()
    changed = set_session("code.toy", {"changed.py": "0"})
    other = rewrite(second, changed)
    assert "jobs of this experiment differ" in refuse("worker", str(SPEC), "--shard", "2/2", "--out", str(OUT))
    second.unlink()
    for command in (["merge", str(SPEC), str(OUT)], ["worker", str(SPEC), "--shard", "2/2", "--out", str(OUT)]):
        error = refuse(*command)
        assert "plugin toy: changed.py" in error
        assert "--allow-changed-code" in error
    assert "nothing to do" in work("2/2", "--allow-changed-code")
    done = run_command("merge", str(SPEC), str(OUT), "--allow-changed-code")
    assert done.returncode == 0
    assert "warning: plugin toy: changed.py" in done.stderr
    assert contents() == contents(Path("whole.sqlite"))
    wrong = rewrite(other, "UPDATE draws SET test_rows = randomblob(length(test_rows))")
    other.unlink()
    error = refuse("merge", str(SPEC), str(OUT), "--allow-changed-code")
    assert f"{wrong}: the test rows" in error
    assert "plugin toy: changed.py" in error
    wrong.unlink()
    assert "in the store runs/small.sqlite" in refuse("merge", str(SPEC), str(OUT))


@pytest.mark.usefixtures("finished")
def test_an_extended_spec_merges_the_shards_of_the_old_one(make_raw: Callable[..., dict[str, Any]]) -> None:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 4}
    write_spec(make_raw, design=design, methods=["toy.constant", "toy.vote", BOLD])
    output = merge(status=3)
    assert "18 trials added" in output
    assert "6 of 24 trials missing" in output
    work("1/3")
    work("2/3")
    work("3/3")
    assert "6 trials added, 18 already stored" in merge()


@pytest.mark.usefixtures("finished")
def test_methods_that_no_longer_share_their_base_arm_get_one_each(make_raw: Callable[..., dict[str, Any]]) -> None:
    bold = {**BOLD, "by_task": {"c": {"trust": 2}}}
    tasks = [*make_raw()["tasks"], {"use": "toy.words", "name": "c"}]
    write_spec(make_raw, tasks=tasks, methods=["toy.constant", "toy.vote", bold])
    assert "18 trials added" in merge(status=3)
    for arguments in ([], ["--store", "whole.sqlite"]):
        assert run_command("run", str(SPEC), *arguments).returncode == 0
    assert contents() == contents(Path("whole.sqlite"))


@pytest.mark.usefixtures("finished")
def test_wrong_arguments_are_refused(make_raw: Callable[..., dict[str, Any]]) -> None:
    assert "give the number of the shard and of all shards" in refuse("worker", str(SPEC), "--shard", "1", "--out", "x")
    assert "have the numbers 1 to 2" in refuse("worker", str(SPEC), "--shard", "0/2", "--out", "x")
    assert f"{SPEC} is not a folder" in refuse("worker", str(SPEC), "--shard", "1/2", "--out", str(SPEC))
    Path("empty").mkdir()
    assert "no shards in empty" in refuse("merge", str(SPEC), "empty")
    assert "missing: No such file or directory; give a folder" in refuse("merge", str(SPEC), "missing")
    assert "small.yaml: file is not a database; give the path of a store" in refuse("merge", str(SPEC), str(SPEC))
    error = refuse("merge", str(SPEC), "whole.sqlite")
    assert "whole.sqlite is not that of a shard; give the folder of `peekbench worker --out`" in error
    shard = shards()[0]
    for command in (["run", str(SPEC), "--store", str(shard)], ["merge", str(SPEC), str(OUT), "--store", str(shard)]):
        assert "is that of shard 1/2; `peekbench merge` puts it into" in refuse(*command)
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 3, "stop": {"looks": 2}}
    write_spec(make_raw, design=design, analyses=["summary"])
    error = refuse("worker", str(SPEC), "--shard", "1/2", "--out", "x")
    assert "design.stop: a shard cannot take planned looks" in error


@pytest.mark.usefixtures("finished")
def test_a_damaged_shard_is_refused_and_the_others_are_merged() -> None:
    first, second = shards()
    content = second.read_bytes()
    place = content.index(b'"started"')
    second.write_bytes(content[:place] + b"x" + content[place + 1 :])
    error = refuse("merge", str(SPEC), str(OUT))
    assert f"{second}: the rows of the table sessions are not those" in error
    assert not Path("runs/small.sqlite").exists()
    second.write_bytes(content[: len(content) // 2])
    error = refuse("merge", str(SPEC), str(OUT))
    assert f"{second}: " in error
    second.unlink()
    assert f"{count_trials(first)} trials added" in merge(status=3)
    work("2/2")
    merge()
    assert contents() == contents(Path("whole.sqlite"))


@pytest.mark.usefixtures("finished")
def test_more_shards_than_work_items() -> None:
    """Stores of other numbers of shards are read, so nothing is computed again."""
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
    assert "24 of 48 trials missing (10 of them failed; the store has all tracebacks), in 1 shard of 1" in merged.stderr
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
