"""`peekbench.measure`: functions and pipelines without a plugin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import peekbench as pb

FIT = """
def fit(unlabeled, train, task, seed, weight: float = 1.0):
    counts = np.bincount(train.labels, minlength=task.num_classes) + weight
    return lambda texts: np.tile(counts / counts.sum(), (len(texts), 1))
"""


def in_session(source: str) -> Any:
    """A function of a notebook."""
    namespace: dict[str, Any] = {"np": np, "__name__": "__main__"}
    exec(source, namespace)
    return namespace["fit"]


def measure(fit: Any, **options: Any) -> pb.Run:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 2}
    return pb.measure(fit, ["toy.words"], design=design, progress=False, **options)


def test_a_function_of_a_notebook_is_measured_and_resumed() -> None:
    first = measure(in_session(FIT), options={"weight": 2.0})
    assert (first.finished, first.failed, first.spec.methods[0].name) == (2, 0, "fit")
    assert measure(in_session(FIT), options={"weight": 2.0}).resumed == 2
    for changed in (measure(in_session(FIT)), measure(in_session(FIT.replace("+ weight", "* weight + 1")))):
        assert changed.finished == 2
        assert changed.name != first.name
    assert len(pb.load_run(first.name).arms) == 2


def test_the_steps_of_a_pipeline_are_fitted_on_unlabeled_texts() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear_model, pipelines = (pytest.importorskip(f"sklearn.{name}") for name in ("linear_model", "pipeline"))
    pipeline = pipelines.make_pipeline(text.TfidfVectorizer(), linear_model.LogisticRegression())
    run = measure(pipeline)
    assert run.failed == 0
    means = run.predictions.to_pandas().groupby("arm")["probability"].mean()
    assert means["base"] != means["extra"]
    assert "fitted on train and unlabeled texts by default: tfidfvectorizer" in str(run.report().document.methods)
    assert measure(pipeline, unlabeled_step="tfidfvectorizer").arms["bias"].equals(run.arms["bias"])
    with pytest.raises(pb.PeekbenchError, match="without a transformer"):
        measure(pipeline[-1])


def test_a_function_of_a_module_runs_by_its_name() -> None:
    import peekbench_toy

    run = measure(peekbench_toy.constant, executor={"use": "local", "options": {"in_process": True}})
    assert run.spec.methods[0].use == "peekbench_toy:constant"


def test_tasks_must_be_a_list() -> None:
    with pytest.raises(pb.PeekbenchError, match=r"tasks=\['toy.words'\]"):
        pb.measure(in_session(FIT), "toy.words")
