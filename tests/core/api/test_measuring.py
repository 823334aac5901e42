"""`peekbench.measure`: functions and pipelines without a plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import peekbench as pb
from peekbench.errors import PluginError, RunWarning, StoreError

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


def measure(fit: Any, num_subsamples: int = 2, **options: Any) -> pb.Run:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples}
    return pb.measure(fit, ["toy.words"], design=design, progress=False, **options)


def test_a_function_of_a_notebook_makes_a_new_run() -> None:
    first = measure(in_session(FIT), options={"weight": 2.0})
    assert (first.finished, first.failed, first.spec.methods[0].name) == (2, 0, "fit")
    again = measure(in_session(FIT), options={"weight": 2.0})
    assert (again.finished, again.resumed) == (2, 0)
    assert again.name != first.name
    assert len(pb.load_run(first.name).arms) == 2
    methods = {"a.py": in_session(FIT), "c": "toy.constant"}
    assert measure(methods, name="mine").finished == 4
    with pytest.raises(StoreError, match="of a-py in a session.*`my_file.py:fit`.*another name.*fresh=True"):
        measure(methods, name="mine")
    assert measure(methods, name="mine", fresh=True).finished == 4


def test_a_failure_on_none_says_that_there_are_no_unlabeled_inputs_in_base() -> None:
    with pytest.raises(PluginError, match="not iterable.*; in the arm base, `unlabeled` is None"):
        measure(in_session("def fit(unlabeled, train):\n    return list(unlabeled)"))


@pytest.mark.slow
def test_more_subsamples_extend_a_run_whose_verdicts_account_for_earlier_reports() -> None:
    Path("own.py").write_text(f"import numpy as np\n{FIT}")
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 2}
    first = pb.measure("own.py:fit", "toy.words", name="mine", design=design, progress=False)
    assert first.report().verdicts
    design["num_subsamples"] = 4
    more = pb.measure("own.py:fit", "toy.words", name="mine", design=design, progress=False)
    assert (more.name, more.finished, more.resumed) == (first.name, 2, 2)
    evidence: Any = more.report().verdicts[0].evidence
    assert (evidence.looks.number, evidence.looks.share) == (2, 2.0)


def test_a_warning_names_the_line_of_the_caller() -> None:
    first_fails = FIT.replace("counts =", "CALLS.append(1)\n    counts = 0 / (len(CALLS) - 1) +", 1)
    with pytest.warns(RunWarning, match="1 trial failed; .*ZeroDivisionError") as caught:
        measure(in_session(f"CALLS = []{first_fails}"))
    assert (caught[0].filename, caught[0].lineno) == (__file__, measure.__code__.co_firstlineno + 2)


def test_a_function_of_a_module_runs_by_its_name() -> None:
    import peekbench_toy

    run = measure(peekbench_toy.constant, executor={"use": "local", "options": {"in_process": True}})
    assert run.spec.methods[0].use == "peekbench_toy:constant"


def test_changed_code_of_a_file_is_a_run_of_its_own(tmp_path: Path) -> None:
    path, executor = tmp_path / "own.py", {"use": "local", "options": {"in_process": True}}
    for code in (FIT, FIT, FIT.replace("+ weight", "* weight + 1")):
        path.write_text(f"import numpy as np\n{code}")
        run = measure(f"{path}:fit", executor=executor)
    assert (run.finished, run.resumed) == (2, 0)
    path.write_text(f"import numpy as np\n{FIT}")
    assert measure(f"{path}:fit", executor=executor).resumed == 2


ADAPTING = """
def fit(unlabeled, train, task):
    def sizes(texts):
        return np.array([sum(map(ord, text)) for text in texts])
    known, is_adapting = sizes(train.inputs), WHEN
    def predict(texts):
        own = sizes(texts)
        scaled = (own - (own if is_adapting else known).mean()) / known.std()
        odds = np.exp(scaled[:, None] * np.arange(task.num_classes))
        return odds / odds.sum(axis=1, keepdims=True)
    return predict
"""


@pytest.mark.parametrize("when", ["True", "unlabeled is not None"])
def test_a_method_that_adapts_in_predict_is_refused_with_advice(when: str) -> None:
    with pytest.raises(
        PluginError,
        match=r"8 of 30 inputs, predicted alone, change by .* Adapt to `unlabeled` in the fit.*`arms: .*alone.`",
    ):
        measure(in_session(ADAPTING.replace("WHEN", when)))
    assert measure(in_session(ADAPTING.replace("WHEN", "False"))).failed == 0
