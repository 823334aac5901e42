"""Measures a function or an estimator that is no plugin."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from peekbench.api.run import Run
from peekbench.api.running import read_experiment, run
from peekbench.api.session_code import hash_text, hash_thing
from peekbench.data.loading import check_dataset, fingerprint, load_dataset
from peekbench.errors import DataError, SpecError
from peekbench.execution.code import code_hashes
from peekbench.plugins.functions import is_estimator, make_entry
from peekbench.plugins.local_code import Code, hold, locate_code
from peekbench.plugins.references import Reference
from peekbench.records.data import Dataset
from peekbench.results.verdict import default_region

DESIGN: Mapping[str, Any] = {"num_train": 50, "num_test": 200, "num_subsamples": 20}
MIN_TEST = 20  # rows of a test set that nobody chose
DEFAULT_NAME = "method"  # of a function without a name
FILES_OF_SAVED_DATA = ("state.json", "dataset_dict.json")
STORED: Mapping[str, Mapping[str, str]] = {
    "accuracy": {"classification": "score"},
    "f1_macro": {"classification": "macro_f1"},
    "neg_log_loss": {"classification": "log_loss"},
    "r2": {"regression": "score"},
}
"""Names that stores have for scores of scikit-learn, by kind of the tasks."""

read_held = Reference("peekbench_sklearn.held_data:read_held")
unlabeled_steps = Reference("peekbench_sklearn.estimators:unlabeled_steps")
check_score = Reference("peekbench_sklearn.scorers:check_score")


def measure(
    method: Any,
    data: Any = None,
    *,
    text: str | None = None,
    label: str | None = None,
    score: str = "score",
    region: float | None = None,
    options: Mapping[str, Any] | None = None,
    unlabeled_step: str | Sequence[str] | None = None,
    progress: bool = True,
    fresh: bool = False,
    **spec: Any,
) -> Run:
    """Measure the bias of a method on data that you hold: scikit-learn estimators, functions, data frames, arrays.

    A function of a module runs in worker processes. Functions of a notebook or a script, estimators, and data in memory
    are used in this process, one trial after the other. With a `name`, the same call resumes its run, more subsamples
    extend it, and another method, option or data set is refused. Without a name, functions of a session and estimators
    make a new run at each call. A method or data set that a name identifies, such as 'my_file.py:fit', is resumed as
    long as its code, its options, the data and the rest of the design are the same.

    Parameters
    ----------
    method
        A classifier or regressor of scikit-learn, usually a pipeline, which is cloned for each fit; a `random_state` of
        None becomes the seed of the fit. By default, each transformer that learns without labels, such as
        `TfidfVectorizer`, `PCA` and `StandardScaler`, is fitted on the train and the unlabeled rows together, also if
        it is a part of another step or of a search. Transformers that need labels, such as `SelectKBest`, and the final
        estimator are fitted on the train rows; estimators of `sklearn.semi_supervised` also receive the unlabeled rows,
        with the label -1. The report names the steps. An estimator in which nothing adapts to unlabeled rows is
        refused, because its bias is 0.

        Or a function with any of the parameters `unlabeled` (inputs, or None in the base arm), `train` (with `inputs`
        and `labels`), `task`, `seed` and `context`; other parameters are options. It returns a `Predictor`, a function
        from inputs to predictions, or an object with `predict_proba` or `predict`, whose `classes_` are names or
        numbers of classes. Or a name as in a spec, such as 'my_file.py:fit'.
    data
        - A data frame of pandas or polars with the columns `text` and `label`, or those that the arguments name.
        - A pair: a list of n texts, or features of shape (n, n_features), and n labels. An estimator sees the columns
          of a data frame of features, such as strings that a `ColumnTransformer` encodes. Labels are numbers for a
          regressor and classes for a classifier; for a function, floats are numbers.
        - A `Dataset` of Hugging Face, a `DatasetDict` whose official splits `train` and `test` are kept, or the folder
          to which `save_to_disk` wrote one.
        - A function that returns one of these, or a `peekbench.Dataset`.
        - The name of a task, such as "docstrings.numpy", or a task as in a spec.
        - A dictionary of these by name, or a list of them.
    text, label
        Columns of texts and labels of data frames and data sets of Hugging Face.
    score
        Score that verdicts are about, as scikit-learn names it, such as "f1_macro", "roc_auc" or
        "neg_mean_squared_error", or as an option of `summary`; by default accuracy or R^2. Higher is better. Scores of
        two classes are about the second one in sorted order.
    region
        Half-width of the region of practical equivalence, in the unit of the score: a bias within it is negligible. By
        default 0.005; scores that begin with `neg_` need it, because their unit is that of the labels.
    options
        Values of the options of a function.
    unlabeled_step
        Step or steps to fit on the train and the unlabeled rows instead of the default ones, named as by `get_params`,
        such as "pca" or "columntransformer__pca".
    progress
        Whether to show the progress.
    fresh
        Delete the trials of an earlier run of the same name, instead of resuming it.
    **spec
        Other keys of a spec: `design`, whose missing keys are 20 subsamples of 50 train rows, as many of each class,
        and 200 test rows, or fewer if data in memory have fewer rows; `name`; `seed`; `analyses`; `executor`; `tasks`
        instead of `data`.

    Returns
    -------
    Run
        Results and reports.

    Raises
    ------
    PluginError
        If the method is none of these, or nothing in it adapts to unlabeled rows.
    DataError
        If data cannot be read, do not suit the method, or have too few rows.
    SpecError
        If a task, a score or another key is invalid.

    Examples
    --------
    >>> import peekbench as pb
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), KNeighborsClassifier())
    >>> design = {"num_train": 30, "num_test": 40, "num_subsamples": 5}
    >>> run = pb.measure(model, load_wine(return_X_y=True), design=design, progress=False)
    >>> bool(run.arms[["base", "extra", "test"]].mean().min() > 0.5)
    True

    Functions of the session work as well:

    >>> import numpy as np
    >>> def fit(unlabeled, train, task, smoothing: float = 1.0):
    ...     counts = np.bincount(train.labels, minlength=task.num_classes) + smoothing
    ...     return lambda texts: np.tile(counts / counts.sum(), (len(texts), 1))
    >>> run = pb.measure(fit, "docstrings.numpy", progress=False)
    >>> bool((run.arms["bias"] == 0).all())  # it does not use the unlabeled texts
    True
    """
    use = _find_use(method, is_named="name" in spec)
    is_here = isinstance(use, Code) and use.module is not None
    tasks = list(_make_tasks(spec.pop("tasks", data), method, text, label))
    uses = [task["use"] for task in tasks if isinstance(task, dict) and isinstance(task["use"], Code)]
    held = [load_dataset(each) for each in uses]
    if is_estimator(method):
        unlabeled_steps(method, unlabeled_step, type(method).__name__)
    chosen = dict(options or {})
    if unlabeled_step is not None:
        chosen["unlabeled_step"] = unlabeled_step
    methods = [{"use": use, "options": chosen}]
    design = spec.pop("design", {})
    if isinstance(design, Mapping):
        design = _complete_design(design, held)
    parts: dict[str, Any] = {"tasks": tasks, "methods": methods, "design": design, **spec}
    if is_here or held:
        parts.setdefault("executor", {"use": "local", "options": {"in_process": True}})
    if "name" not in parts:
        if isinstance(design, Mapping) and not design.get("stop"):
            design = {**design, "num_subsamples": None}  # more subsamples extend the run, which knows its reports
        known = code_hashes([use] if isinstance(use, Code) else []), [each.digest for each in uses]
        named = {**parts, "design": design, "executor": None, "known": known}
        identity = json.dumps(named, sort_keys=True, default=str)
        ending = token_hex(4) if is_here else hash_text(identity)  # of what no hash identifies, each run is new
        parts["name"] = f"{use.rpartition(':')[2].replace('.', '-').strip('_')}-{ending}"
    if score != "score" or region is not None:  # after the name: another score needs no other trials
        parts["analyses"] = _analyses(parts, method, score, region)
    return run(parts, progress=progress, fresh=fresh)


def _complete_design(chosen: Mapping[str, Any], held: Sequence[Dataset]) -> dict[str, Any]:
    """Return a design with default sizes where none are chosen, and with fewer rows if data in memory have too few."""
    design = {**DESIGN, **chosen}
    for dataset in held:
        num_rows = len(dataset.labels)
        num_train = num_rows // 3
        if dataset.splits:
            num_train, num_rows = (list(dataset.splits).count(split) for split in ("train", "test"))
        if "num_train" not in chosen:
            design["num_train"] = min(design["num_train"], num_train)
        if "num_test" not in chosen and isinstance(design["num_train"], int):
            num_test = max(0, num_rows - (0 if dataset.splits else design["num_train"])) // 2
            if num_test < MIN_TEST:
                raise DataError(
                    f"{len(dataset.labels):,} rows leave {num_test} for each of two test sets, too few for a verdict; "
                    f"give more rows, or choose the sizes, such as design={{'num_train': {num_train}, 'num_test': "
                    f"{max(1, num_test)}}}"
                )
            design["num_test"] = min(design["num_test"], num_test)
    return design


def _make_tasks(data: Any, method: Any, text: str | None, label: str | None) -> Iterator[Any]:
    """Yield tasks as in a spec: names, folders of data sets of Hugging Face, and data of this session."""
    named: list[tuple[str, Any]] = [("", data)]
    if type(data) is dict and not _is_component(data):  # other mappings are data sets
        named = [(str(name), each) for name, each in data.items()]
    elif isinstance(data, list) or (isinstance(data, tuple) and all(map(_is_component, data))):
        named = [("" if _is_component(each) else f"data-{number}", each) for number, each in enumerate(data, start=1)]
    for name, each in named:
        own = {"name": name} if name else {}
        if isinstance(each, str | Path) and any((Path(each) / file).is_file() for file in FILES_OF_SAVED_DATA):
            columns = {option: column for option, column in (("text", text), ("label", label)) if column}
            options = {"path": str(Path(each).absolute()), **columns}
            yield {"use": "files", "name": Path(each).name, "options": options, **own}
        elif isinstance(each, str | Path):
            yield {"use": str(each), **own} if own else str(each)
        elif _is_component(each):
            yield {**each, **own}
        else:
            dataset = read_held(each, name or "data", method, text, label)
            check_dataset(dataset, name or "data")
            yield {"use": hold(_loader(dataset), "load", fingerprint(dataset)), "name": name or "data"}


def _is_component(data: Any) -> bool:
    return isinstance(data, str | Path) or (isinstance(data, dict) and isinstance(data.get("use"), str))


def _loader(dataset: Dataset) -> Callable[[], Dataset]:
    def load() -> Dataset:
        """Return the rows that a session holds."""
        return dataset

    return load


def _analyses(parts: Mapping[str, Any], method: Any, score: str, region: float | None) -> list[dict[str, Any]]:
    """Return the default analyses of a score, after a test of it for each task.

    Raises
    ------
    SpecError
        If a task does not have the score, there are analyses already, or its region is unknown.
    """
    if "analyses" in parts:
        raise SpecError("score and region are options of analyses; set them there, or leave out `analyses`")
    if score not in ("score", "bits_per_byte"):
        experiment = read_experiment(parts)
        tasks = [(task.name, load_dataset(experiment.source(task))) for task in experiment.tasks]
        kinds = {check_score(score, dataset, name, method) for name, dataset in tasks}
        score = STORED.get(score, {}).get("/".join(kinds), score)
    options = {"score": score, "region": default_region(score) if region is None else region}
    return [{"use": "summary", "options": options}, {"use": "permutation", "options": {"score": score}}]


def _find_use(fit: Any, *, is_named: bool) -> str:
    """Return the name of a method for specs; for a run with a name, with a hash if only this process has the method."""
    if isinstance(fit, str):
        return locate_code(fit, Path.cwd())
    name = getattr(fit, "__name__", type(fit).__name__.lower())
    name = name if name.isidentifier() else DEFAULT_NAME
    make_entry(fit, name)  # raises an error if it is no method
    module = getattr(fit, "__module__", "__main__")
    if inspect.isfunction(fit) and module != "__main__" and getattr(sys.modules.get(module), name, None) is fit:
        return locate_code(f"{module}:{name}", Path.cwd())
    return hold(fit, name, hash_thing(fit) if is_named else "")
