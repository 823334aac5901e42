"""What trackers show of a run: numbers by name and step, settings, tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from peekbench import Analysis
from peekbench.records import RunStarted, TrialFinished, Verdict

FORBIDDEN = re.compile(r"[^\w.\- ]")  # what MLflow does not allow in a part of a name
MAX_NAME = 100  # characters of a part of a name
LIMITS = ("estimate", "low", "high")


def join_names(*parts: object) -> str:
    """Return a name that all trackers allow, with parts that they show as groups.

    Examples
    --------
    >>> join_names("bert/base", 50, "größe: 1")
    'bert_base/50/größe_ 1'
    """
    return "/".join(_allowed(str(part)) for part in parts)


def _allowed(part: str) -> str:
    return FORBIDDEN.sub("_", part)[:MAX_NAME].strip(" .") or "_"


def describe_settings(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a spec that readers compare between runs, by name.

    Examples
    --------
    >>> lsa = {"name": "lsa", "options": {"num_components": 10}}
    >>> describe_settings({"name": "small", "seed": 1, "methods": [lsa], "design": {"num_train": 50}})
    {'seed': '1', 'methods': 'lsa', 'lsa.num_components': '10', 'design.num_train': '50'}
    """
    settings: dict[str, str] = {}
    for key, value in spec.items():
        if key in ("seed", "arms"):
            settings[key] = str(value)
        elif key == "design":
            settings |= {f"design.{name}": str(part) for name, part in value.items()}
        elif key in ("tasks", "methods"):
            settings[key] = ", ".join(str(component["name"]) for component in value)
            for component in value if key == "methods" else ():
                settings |= {f"{component['name']}.{name}": str(part) for name, part in component["options"].items()}
    return settings


class TrialNumbers:
    """Turns trials into numbers with names.

    Parameters
    ----------
    event
        Start of the run.
    """

    def __init__(self, event: RunStarted) -> None:
        design = event.spec.get("design", {})
        self._has_sizes = any(len(_as_list(design.get(size, ()))) > 1 for size in ("num_train", "num_test"))
        self._num_failed = 0

    def describe(self, event: TrialFinished) -> dict[str, float]:
        """Return scores, effects, metrics and times of a trial by name, except numbers that are not finite."""
        self._num_failed += event.failed
        draw = event.trial.draw
        sizes = (f"{draw.num_train}-{draw.num_test}",) if self._has_sizes else ()
        of_trial = (event.trial.method, draw.task, *sizes)
        numbers: dict[str, float | None] = {
            "trials/done": event.number,
            "trials/share": event.number / max(1, event.planned),
            "trials/failed": self._num_failed,
        }
        scores = {name: arm.scores.get("score") for name, arm in event.arms.items()}
        numbers |= {join_names(*of_trial, arm): score for arm, score in scores.items()}
        for effect, arm, reference in (("boost", "extra", "base"), ("bias", "test", "extra")):
            score, other = scores.get(arm), scores.get(reference)
            if score is not None and other is not None:
                numbers[join_names(*of_trial, effect)] = score - other
        for name, result in event.arms.items():
            numbers[join_names(*of_trial, "seconds", name)] = result.fit_seconds + result.predict_seconds
            numbers |= {join_names(*of_trial, metric, name): value for metric, value in result.metrics.items()}
        return _finite(numbers)


def describe_verdicts(analysis: Analysis) -> dict[str, float]:
    """Return the estimates of an analysis and the limits of their intervals, by name."""
    return _finite(
        {
            join_names(analysis.name, verdict.effect, verdict.method, name): value
            for verdict in analysis.verdicts
            for name, value in zip(LIMITS, (verdict.estimate.mean, *verdict.estimate.limits), strict=True)
        }
    )


def describe_decisions(analysis: Analysis) -> dict[str, str]:
    """Return the decisions of an analysis, by name."""
    return {_decision_name(analysis, verdict): verdict.decision for verdict in analysis.verdicts}


def _decision_name(analysis: Analysis, verdict: Verdict) -> str:
    return join_names(analysis.name, verdict.effect, verdict.method, "decision")


def result_tables(analysis: Analysis) -> Iterator[tuple[str, list[str], Sequence[Sequence[Any]]]]:
    """Yield the name, the columns and the rows of each table of results."""
    for table in analysis.tables:
        if table.topic == "results":
            names, rows = table.spread()
            yield join_names(analysis.name, table.title), _unique_names(names), rows


def _unique_names(names: Sequence[str]) -> list[str]:
    unique: list[str] = []
    for name in names:
        number = sum(other.partition(" (")[0] == name for other in unique)
        unique.append(f"{name} ({number + 1})" if number else name)
    return unique


def _finite(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items() if value is not None and math.isfinite(value)}


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]
