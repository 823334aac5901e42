"""Measures a function or an estimator that is no plugin."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peekbench.api.run import Run
from peekbench.api.running import run
from peekbench.api.session_code import hash_text, hash_thing
from peekbench.errors import SpecError
from peekbench.execution.code import code_hashes
from peekbench.plugins.functions import make_entry
from peekbench.plugins.local_code import bind, give, names_code

DESIGN: Mapping[str, Any] = {"num_train": 50, "num_test": 200, "num_subsamples": 20}
DEFAULT_NAME = "method"  # of a function without a name


def measure(
    fit: Any,
    tasks: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    unlabeled_step: str | Sequence[str] | None = None,
    progress: bool = True,
    **spec: Any,
) -> Run:
    """Measure the bias of a method that is a plain function or a scikit-learn pipeline.

    A function of a module runs in worker processes. A function of a notebook or a script, and an estimator, run in this
    process, one trial after the other. The same call resumes its run. If the code, the options, the tasks or the design
    change, a new run is made.

    Parameters
    ----------
    fit
        A function with any of the parameters `unlabeled` (texts, or None in the base arm), `train` (with `inputs` and
        `labels`), `task`, `seed` and `context`; other parameters are options. It returns a `Predictor`, a function from
        texts to probabilities, or an object with `predict_proba` or `predict`. Or a pipeline of scikit-learn whose
        input are texts, which is cloned for each fit. Or a name as in a spec, such as 'my_file.py:fit'.
    tasks
        Tasks as in a spec, such as ``["docstrings.all"]``.
    options
        Values of the options of `fit`.
    unlabeled_step
        Step or steps of the pipeline that are fitted on the train and the unlabeled texts; by default all transformers
        before the final estimator that need no labels. The report says which.
    progress
        Whether to show the progress.
    **spec
        Other keys of a spec: `design`, by default 20 subsamples of 50 train texts and 200 test texts; `name`; `seed`;
        `analyses`; `executor`.

    Returns
    -------
    Run
        Results and reports.

    Raises
    ------
    PluginError
        If `fit` is neither a method nor a pipeline with a transformer.
    SpecError
        If a task or another key is invalid.

    Examples
    --------
    >>> import numpy as np, peekbench as pb
    >>> def fit(unlabeled, train, task, smoothing: float = 1.0):
    ...     counts = np.bincount(train.labels, minlength=task.num_classes) + smoothing
    ...     return lambda texts: np.tile(counts / counts.sum(), (len(texts), 1))
    >>> run = pb.measure(fit, tasks=["docstrings.numpy"], progress=False)
    >>> bool((run.arms["bias"] == 0).all())  # it does not use the unlabeled texts
    True
    """
    if isinstance(tasks, str):
        raise SpecError(f"tasks is the text {tasks!r}; give a list, as in tasks=[{tasks!r}]")
    use, is_here = _find_use(fit)
    chosen = dict(options or {})
    if unlabeled_step is not None:
        chosen["unlabeled_step"] = unlabeled_step
    bind([use], Path.cwd())  # an earlier spec of this session may have a file of the same name
    method = {"use": use, "options": chosen}
    parts: dict[str, Any] = {"tasks": list(tasks), "methods": [method], "design": dict(DESIGN), **spec}
    if is_here:
        parts.setdefault("executor", {"use": "local", "options": {"in_process": True}})
    if "name" not in parts:
        code = code_hashes([use]) if names_code(use) and not is_here else {}  # a name of this session has a hash
        text = json.dumps({**parts, "executor": None, "code": code}, sort_keys=True, default=str)
        parts["name"] = f"{use.rpartition(':')[2].replace('.', '-').strip('_')}-{hash_text(text)}"
    return run(parts, progress=progress)


def _find_use(fit: Any) -> tuple[str, bool]:
    """Return the name of a method for specs, and whether only this process has the method."""
    if isinstance(fit, str):
        return fit, False
    name = getattr(fit, "__name__", type(fit).__name__.lower())
    name = name if name.isidentifier() else DEFAULT_NAME
    make_entry(fit, name)  # raises an error if it is no method
    module = getattr(fit, "__module__", "__main__")
    if inspect.isfunction(fit) and module != "__main__" and getattr(sys.modules.get(module), name, None) is fit:
        return f"{module}:{name}", False
    return give(fit, name, hash_thing(fit)), True
