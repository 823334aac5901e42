"""Mistakes that people make in Python: messages are about Python, and typing their remedies leads to a call that works.

A mistake in `tests/fixtures/mistakes/python` has a `call`, what its message contains (`says`), and in `then` steps:

    type     replaces texts of the call by texts that the message prints word for word
    edit     replaces texts of the call as the message describes
    says     a part of the message that the step answers, if it is not the first one

`files` are written before, `before` is a call that works, and `setup` are statements. Calls can use `NAMES`.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import peekbench as pb

FOLDER = Path(__file__).parents[2] / "fixtures" / "mistakes" / "python"
MISTAKES = [
    pytest.param(mistake, id=f"{file.stem}: {mistake['mistake']}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for mistake in yaml.safe_load(file.read_text("utf-8"))
]
MAX_FRAMES = 3  # `eval`, the code that it runs, and the public function
OF_OTHERS = re.compile(r"(?<!\w)--[a-z]|YAML|\{[a-z]\w*: ")
"""Options of commands, YAML and its mappings without quotes, unless the same sentence says what to write in Python."""
ALLOWED = re.compile(r"`peekbench [^`]*` \(in Python, [^)]*\)|--[a-z-]+ \(in Python, [^)]*\)|in YAML [a-z ]+")


class Centered(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that may be fitted with labels."""

    def fit(self, rows: Any, y: Any = None) -> Centered:
        self.mean_ = rows.mean(0) if y is None else rows[y == y[0]].mean(0)
        return self

    def transform(self, rows: Any) -> Any:
        return rows - self.mean_


RNG = np.random.default_rng(0)
LABELS = np.arange(120) % 2
NAMES = {
    "pb": pb, "pd": pd, "np": np,
    "TEXTS": [f"{'bad' if label else 'good'} w{number % 60}" for number, label in enumerate(LABELS)],
    "LABELS": LABELS,
    "X": RNG.normal(size=(120, 3)) + 2 * LABELS[:, None],
    "SMALL": {"num_train": 20, "num_test": 30, "num_subsamples": 1, "progress": False},
    "QUICK": {"analyses": ["toy.count"], "executor": {"use": "local", "options": {"in_process": True}}},
    "DESIGN": {"num_train": 12, "num_test": 30, "num_subsamples": 1},
    "words": make_pipeline(TfidfVectorizer(), LogisticRegression()),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
    "ridge": make_pipeline(StandardScaler(), Ridge()),
    **{function.__name__: function for function in (
        Centered, BaggingClassifier, TfidfVectorizer, SimpleImputer, LogisticRegression, make_pipeline, StandardScaler,
    )},
}  # fmt: skip


def message_of(call: str, names: dict[str, Any]) -> str:
    """Return the message of a call; nothing if it works."""
    try:
        eval(call, names)
    except pb.PeekbenchError as error:
        # One paragraph after the lines of this call and of the public function.
        assert len(traceback.extract_tb(error.__traceback__)) <= MAX_FRAMES
        assert error.__cause__ is None
        assert error.__suppress_context__
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_messages_speak_python_and_typing_their_remedies_leads_to_a_call_that_works(mistake: dict[str, Any]) -> None:
    for name, content in mistake.get("files", {}).items():
        Path(name).write_text(content["head"] + content["rows"] * content["times"])
    names = dict(NAMES)
    exec(mistake.get("setup", ""), names)
    assert not message_of(mistake.get("before", "0"), names)
    call = mistake["call"]
    message = message_of(call, names)
    for step in [{"says": mistake["says"], **mistake["then"][0]}, *mistake["then"][1:]]:
        assert step["says"] in message
        assert not OF_OTHERS.search(ALLOWED.sub("", message))
        for before, after in {**step.get("type", {}), **step.get("edit", {})}.items():
            assert before in call
            call = call.replace(before, after)
        assert all(after in message for after in step.get("type", {}).values())
        message = message_of(call, names)
    assert not message
