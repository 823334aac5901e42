"""Fragments: what is written is read back bit by bit, also after a kill, and damage is found."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.errors import PeekbenchError, StoreError
from peekbench.records.hosts import Host
from peekbench.records.trials import ArmResult, Draw, Trial, TrialFailure, TrialResult
from peekbench.spec.compatibility import Experiment
from peekbench.store.fragments import Fragment, FragmentWriter, Header, Shard, find_fragments

EXPERIMENT = Experiment({"name": "small"}, {"a": {"fingerprint": "f"}}, {"vote": "k"})
HEADER = Header(Shard(3, 40), EXPERIMENT, "node-1", {"python": "3"})
HOST = Host("node-2", {"cores": 8}, {"numpy": "2.0"})
EXACT = [1 / 3, 5e-324, -0.0, 1.7976931348623157e308, np.nextafter(1.0, 2.0)]
FOLDER = Path("fragments")


def make_outcomes(number: int = 4) -> list[TrialResult | TrialFailure]:
    """Return classifications, a regression and a failure with numbers that are easily rounded."""
    rng = np.random.default_rng(0)
    outcomes: list[TrialResult | TrialFailure] = []
    for subsample in range(number):
        probabilities = rng.dirichlet(np.ones(3), 30).astype(np.float32)
        targets = np.asarray(EXACT)
        scores = {"num_correct": 10, "score": EXACT[subsample % 5], "brier": None}
        metrics = {"loss": float(rng.normal()), "größe": 1e-17}
        arms = [
            ArmResult(arm, scores, 0.1, 1e-9, metrics, predictions)
            for arm in ("base", "test")
            for predictions in [targets if subsample % 2 else probabilities]
        ]
        labels: Any = targets if subsample % 2 else np.arange(30) % 3
        rows = rng.permutation(len(labels)).astype(np.int64)
        trial = Trial(Draw("a", 12, len(labels), subsample), "vote")
        outcomes.append(TrialResult(trial, labels, rows, tuple(arms), "node-2"))
    return [*outcomes, TrialFailure(Trial(Draw("a", 12, 30, number), "vote"), "ValueError: ü\n", "Traceback")]


def write(outcomes: Sequence[TrialResult | TrialFailure], header: Header = HEADER) -> Path:
    with FragmentWriter.create(FOLDER, header) as writer:
        for outcome in outcomes:
            writer.save(outcome)
    return writer.path


def bits(outcome: TrialResult | TrialFailure | Host) -> object:
    """Return everything that a store keeps of an outcome, numbers as their bytes."""
    if not isinstance(outcome, TrialResult):
        return outcome
    arms = [
        (arm.arm, [(name, score, pack(score)) for name, score in arm.scores.items()], pack(arm.fit_seconds),
         pack(arm.predict_seconds), dict(arm.metrics), arm.predictions.shape, arm.predictions.tobytes())
        for arm in outcome.arms
    ]  # fmt: skip
    kind = "<f8" if outcome.test_labels.dtype.kind == "f" else "<i4"
    return outcome.trial, outcome.host, outcome.test_labels.astype(kind).tobytes(), outcome.test_rows.tolist(), arms


def pack(number: float | None) -> bytes:
    return b"" if number is None else struct.pack("<d", number)


def test_outcomes_are_read_back_bit_by_bit() -> None:
    outcomes = make_outcomes(5)
    with FragmentWriter.create(FOLDER, HEADER) as writer:
        writer.add_host(HOST)
        writer.save(*outcomes)
    path = writer.path
    fragment = Fragment(path)
    assert fragment.read_header() == HEADER
    host, *events = fragment.events()
    assert host == HOST
    assert list(map(bits, events)) == list(map(bits, outcomes))
    assert list(fragment.finished()) == [outcome.trial for outcome in outcomes[:-1]]
    assert path.name.startswith("shard-03-of-40-")
    assert find_fragments(FOLDER) == find_fragments(path) == [path]


def test_a_fragment_that_is_cut_anywhere_has_all_its_complete_lines() -> None:
    outcomes = make_outcomes()
    path = write(outcomes)
    content = path.read_bytes()
    ends = [position + 1 for position, byte in enumerate(content) if byte == ord("\n")]
    for size in {0, 1, *range(5, len(content), 97), *ends, *(end - 1 for end in ends)}:
        path.write_bytes(content[:size])
        num_whole = sum(end <= size for end in ends)
        fragment = Fragment(path)
        assert (fragment.read_header() is None) == (num_whole == 0)
        assert len(list(fragment.events())) == max(0, num_whole - 1)
        path.write_bytes(content[:size] + bytes(4096) + b'"}\n')  # the zeros are not yet on the file server
        assert len(list(fragment.events())) == max(0, num_whole - 1)


@pytest.mark.parametrize("damage", ["change", "remove", "swap", "splice", "zero"])
def test_damage_before_the_last_line_is_an_error_that_names_file_and_line(damage: str) -> None:
    path = write(make_outcomes())
    lines = path.read_bytes().splitlines(keepends=True)
    other = write(make_outcomes(), replace(HEADER, host="node-3")).read_bytes().splitlines(keepends=True)
    damaged = {
        "change": [*lines[:2], lines[2].replace(b'"arm":"test"', b'"arm":"best"'), *lines[3:]],
        "remove": [*lines[:2], *lines[3:]],
        "swap": [*lines[:2], lines[3], lines[2], *lines[4:]],
        "splice": [*lines[:2], *other[2:]],
        "zero": [*lines[:2], lines[2][:9] + b"\0" + lines[2][10:], *lines[3:]],
    }[damage]
    path.write_bytes(b"".join(damaged))
    outcomes = Fragment(path).events()
    next(outcomes)
    with pytest.raises(StoreError, match=rf"{path}, line 3: damaged"):
        list(outcomes)
    with pytest.raises(StoreError, match="line 3: damaged"):
        list(Fragment(path).finished())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"task":"a","score":1}\n', "is not a fragment"),
        (b"\xff\xfe\n", "is not a fragment"),
        (b'{"peekbench_fragment":2}\n', "has version 2, this peekbench reads version 1"),
        (b'{"peekbench_fragment":1}\n', "line 1 is damaged"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str) -> None:
    path = Path("other.jsonl")
    path.write_bytes(content)
    with pytest.raises(StoreError, match=message):
        _ = Fragment(path).read_header()


def test_a_reader_sees_the_lines_that_are_complete_while_the_job_goes_on() -> None:
    outcomes = make_outcomes()
    with FragmentWriter.create(FOLDER, HEADER) as writer:
        for number, outcome in enumerate(outcomes):
            assert len(list(Fragment(writer.path).events())) == number
            writer.save(outcome)


def test_saved_lines_reach_the_disk_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    synced = []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with FragmentWriter.create(FOLDER, HEADER) as writer:
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(now[0]))
        outcome = make_outcomes(1)[0]
        for moment, outcomes in ((100.5, [outcome]), (101.1, []), (102.5, []), (103.0, [outcome]), (103.5, [outcome])):
            now[0] = moment
            writer.save(*outcomes)
        assert synced == [101.1, 103.0]
    assert synced[2:] == [103.5]  # when it is closed


def test_nothing_follows_an_incomplete_line(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *_ = make_outcomes()
    write_all = os.write

    def fail(descriptor: int, content: bytes) -> int:
        if len(content) < 100:
            raise OSError(28, "No space left on device")
        return write_all(descriptor, content[: len(content) - 50])

    with FragmentWriter.create(FOLDER, HEADER) as writer:
        writer.save(first)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fail)
            with pytest.raises(StoreError, match="No space left on device; .* free some disk space"):
                writer.save(second)
        with pytest.raises(StoreError, match="its last line is incomplete"):
            writer.save(second)
    assert list(Fragment(writer.path).finished()) == [first.trial]


@pytest.mark.parametrize("text", ["3", "0/4", "5/4", "a/b", "1/0", "-1/4", "1/4/2", " 1/4", "\u0661/\u0664", "0/0"])
def test_wrong_shards_are_refused(text: str) -> None:
    with pytest.raises(PeekbenchError, match="--shard"):
        Shard.parse(text)
