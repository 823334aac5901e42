"""Records of Every Eval Ever: one JSON file per method and model, with all scores and effects as its results.

The format is the schema 0.3.0 of https://github.com/evaleval/every_eval_ever. The files lie in the folders of its
data store: `data/peekbench/DEVELOPER/MODEL/UUID.json`.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from peekbench import PeekbenchError
from peekbench.records import POINTS, Quantity, Report, RunContent, ScoreEstimate
from peekbench_exports.tables import read_content

SCHEMA_VERSION = "0.3.0"
COLLECTION = "peekbench"
UNSTATED = "unspecified"
LIMITS = ("min_score", "max_score")
MEANINGS: dict[Quantity, str] = {
    "extra": "Score after adaptation to unlabeled texts that are not the test texts: the uncontaminated score",
    "bias": "Signed: score after adaptation to the unlabeled test texts, minus the uncontaminated score; 0 is no bias",
    "boost": "Signed: the uncontaminated score, minus the score without unlabeled texts",
}


def write_records(report: Report, folder: Path) -> None:
    """Write a record of each method and model; controls are no evaluations and are left out."""
    if "spec" not in report.details:
        raise PeekbenchError(
            f"{report.name} is a report of no run, and this format describes runs; use exports.csv or exports.latex "
            "for a table of scores"
        )
    run = read_content(report)
    groups: dict[tuple[str, str], list[ScoreEstimate]] = {}
    for estimate in run.estimates:
        if not estimate.control:
            groups.setdefault((estimate.method, estimate.model), []).append(estimate)
    for (method, model), estimates in groups.items():
        record = _record(run, method, model, estimates)
        developer, name = record["model_info"]["id"].split("/")
        path = folder / "data" / COLLECTION / developer / name / f"{_uuid(run, method, model)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _uuid(run: RunContent, method: str, model: str) -> uuid.UUID:
    """Return the same identifier for the same method of the same run, in the form of a random UUID."""
    digest = sha256("\n".join((run.report.details["identifier"], method, model)).encode()).digest()
    return uuid.UUID(bytes=digest[:16], version=4)


def _record(run: RunContent, method: str, model: str, estimates: Sequence[ScoreEstimate]) -> dict[str, Any]:
    session = run.report.details["sessions"][-1]
    started = str(int(datetime.fromisoformat(session["started"]).timestamp()))
    info = _model_info(run, method, model)
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{COLLECTION}/{info['id']}/{started}",
        "evaluation_timestamp": started,
        "retrieved_timestamp": started,
        "source_metadata": {
            "source_name": f"peekbench run {run.report.name}",
            "source_type": "evaluation_run",
            "source_organization_name": UNSTATED,
            "evaluator_relationship": "other",
            "additional_details": {"peekbench_run": run.report.details["identifier"]},
        },
        "eval_library": {"name": "peekbench", "version": session["peekbench"]},
        "model_info": info,
        "evaluation_results": [_result(run, estimate) for estimate in estimates],
    }


def _model_info(run: RunContent, method: str, model: str) -> dict[str, Any]:
    written = next(candidate for candidate in run.report.details["spec"]["methods"] if candidate["name"] == method)
    use = written["use"]
    developer = _portable(re.split(r"[.:]", use)[0])
    label = method
    if model:
        label = f"{method} with {model}"
    details = {
        "deployment_type": "self_deployed",
        "model_availability": "unknown",
        "method": use,
        "options": json.dumps(written["options"], sort_keys=True),
    }
    return {
        "name": label,
        "id": f"{developer}/{_portable(label)}",
        "developer": developer,
        "additional_details": details,
    }


def _portable(text: str) -> str:
    """Return text as a part of a path on every system."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-. ") or "unnamed"


def _result(run: RunContent, estimate: ScoreEstimate) -> dict[str, Any]:
    sizes = {name: getattr(estimate, name) for name in ("num_train", "num_test")}
    sizes["num_unlabeled"] = run.report.details["spec"]["design"].get("num_unlabeled")
    known = {name: str(size) for name, size in sizes.items() if size is not None}
    place = estimate.task or f"average of {estimate.num_tasks} tasks"
    name = ", ".join([place, *(f"{name} {size}" for name, size in known.items())])
    metric, bounds = f"{estimate.quantity} of {estimate.metric}", (-1.0, 1.0)
    if estimate.quantity == "extra":
        metric, bounds = estimate.metric, (0.0, 1.0)
    unit, limits = "proportion", dict[str, float | str](zip(LIMITS, bounds, strict=True))
    if estimate.units != POINTS:
        unit, limits = "score", {"min_score": "-Infinity", "max_score": "Infinity"}
    return {
        "evaluation_result_id": "/".join((place, estimate.quantity, *known.values())),
        "evaluation_name": name,
        "source_data": _source_data(run, estimate.task, place),
        "metric_config": {
            "evaluation_description": f"{MEANINGS[estimate.quantity]}. Mean over subsamples of the data.",
            "metric_id": f"peekbench.{estimate.quantity}.{_portable(estimate.metric).lower()}",
            "metric_name": metric,
            "metric_kind": estimate.metric,
            "metric_unit": unit,
            "lower_is_better": estimate.quantity == "bias",
            "score_type": "continuous",
            **limits,
            "additional_details": {"quantity": estimate.quantity, **known},
        },
        "score_details": {
            "score": estimate.estimate.mean,
            "details": {"decision": estimate.decision},
            "uncertainty": _uncertainty(estimate),
        },
    }


def _uncertainty(row: ScoreEstimate) -> dict[str, Any]:
    content: dict[str, Any] = {"num_samples": row.num_trials}
    estimate = row.estimate
    if not math.isnan(estimate.standard_error):
        content["standard_error"] = {"value": estimate.standard_error, "method": "analytic"}
    if estimate.has_interval:
        content["confidence_interval"] = {
            "lower": estimate.low,
            "upper": estimate.high,
            "confidence_level": estimate.level,
            "method": "Student's t over subsamples of the data",
        }
    return content


def _source_data(run: RunContent, task: str, place: str) -> dict[str, Any]:
    data = run.report.details["data"]
    if not task:
        return {"dataset_name": place, "source_type": "other", "additional_details": {"tasks": ", ".join(data)}}
    facts = data[task]
    details: Mapping[str, Any] = facts.get("details", {})
    known = {"task": facts["use"], "fingerprint": facts["fingerprint"], "rows": str(facts["rows"])}
    if repository := details.get("repository"):
        revision = {"revision": str(details.get("revision", ""))}
        source = {"dataset_name": task, "source_type": "hf_dataset", "hf_repo": repository}
        return {**source, "additional_details": {**known, **revision}}
    return {"dataset_name": task, "source_type": "other", "additional_details": known}
