"""Outcomes of trials as JSON values without loss: a result that is read has every bit of the one that was written."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from peekbench.records.trials import ArmResult, Draw, Trial, TrialFailure, TrialResult
from peekbench.store.arrays import labels_to_store, predictions_to_store, rows_to_store


def outcome_to_json(outcome: TrialResult | TrialFailure) -> dict[str, Any]:
    """Return an outcome as JSON values. Python writes each float with as many digits as are needed to read it back."""
    trial = {**outcome.trial.draw._asdict(), "method": outcome.trial.method}
    values: dict[str, Any] = {"trial": trial, "host": outcome.host}
    if isinstance(outcome, TrialFailure):
        return {**values, "error": outcome.error, "traceback": outcome.traceback}
    arms = [
        {
            "arm": arm.arm,
            "scores": dict(arm.scores),
            "fit_seconds": arm.fit_seconds,
            "predict_seconds": arm.predict_seconds,
            "metrics": dict(arm.metrics),
            "predictions": _array_to_json(predictions_to_store(arm.predictions)),
        }
        for arm in outcome.arms
    ]
    labels, rows = labels_to_store(outcome.test_labels), rows_to_store(outcome.test_rows)
    return {**values, "test_labels": _array_to_json(labels), "test_rows": _array_to_json(rows), "arms": arms}


def outcome_from_json(values: Mapping[str, Any]) -> TrialResult | TrialFailure:
    """Return the outcome of which `outcome_to_json` has returned the values."""
    trial = trial_from_json(values)
    if "error" in values:
        return TrialFailure(trial, values["error"], values["traceback"], values["host"])
    arms = tuple(ArmResult(**{**arm, "predictions": _array_from_json(arm["predictions"])}) for arm in values["arms"])
    labels, rows = _array_from_json(values["test_labels"]), _array_from_json(values["test_rows"])
    return TrialResult(trial, labels, rows, arms, values["host"])


def trial_from_json(values: Mapping[str, Any]) -> Trial:
    """Return the trial of an outcome without its arrays."""
    draw = dict(values["trial"])
    return Trial(method=draw.pop("method"), draw=Draw(**draw))


def _array_to_json(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "base64": base64.b64encode(array.tobytes()).decode("ascii"),
    }


def _array_from_json(values: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    content = base64.b64decode(values["base64"], validate=True)
    return np.frombuffer(content, values["dtype"]).reshape(values["shape"])
