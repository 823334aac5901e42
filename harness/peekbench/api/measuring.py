"""Measures a function or an estimator that is no plugin."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from peekbench.api.inputs import load
from peekbench.api.run import run
from peekbench.api.run_view import Run
from peekbench.data.dataset_checks import check_dataset
from peekbench.data.held_data import read_held
from peekbench.data.loading import fingerprint, forget, load_dataset
from peekbench.data.sampling import largest_set
from peekbench.data.text_files import suffix_of
from peekbench.errors import DataError, PluginError, SpecError, public
from peekbench.execution.provenance import describe_code
from peekbench.formatting import shorten
from peekbench.plugins.estimators import unlabeled_steps
from peekbench.plugins.names import Code, find_nearest, hold, locate_code
from peekbench.plugins.protocols import is_estimator
from peekbench.plugins.scorers import check_score
from peekbench.plugins.validation import DATA_SUFFIXES, make_entry
from peekbench.records.data import Dataset, OfficialSplits
from peekbench.results.region import default_region
from peekbench.spec.design import OFFICIAL, Design
from peekbench.spec.experiment import ExperimentSpec

DESIGN: Mapping[str, Any] = {"num_train": 50, "num_test": 200, "num_subsamples": 20}
MIN_TEST = 20  # rows of a test set that nobody chose
DIGITS = 8  # of the hash in the name of a run
DEFAULT_NAME = "method"  # of a function without a name
FILES = "files"  # data source of paths
DATA_OPTIONS = (
    "text", "label", "label_separator", "group", "class_names", "drop_missing", "drop_shared_groups",
    "drop_duplicates", "test_split", "kind",
)  # fmt: skip
FILES_OF_SAVED_DATA = ("state.json", "dataset_dict.json")
STORED: Mapping[str, Mapping[str, str]] = {
    "accuracy": {"classification": "score", "multilabel": "score"},
    "f1_macro": {"classification": "macro_f1", "multilabel": "macro_f1"},
    "f1_micro": {"multilabel": "micro_f1"},
    "neg_log_loss": {"classification": "log_loss"},
    "r2": {"regression": "score"},
}
"""Names that stores have for scores of scikit-learn, by kind of the tasks."""


@public
def measure(
    method: Any,
    data: Any = None,
    *,
    train: Any = None,
    test: Any = None,
    extra: Any = None,
    text: str | None = None,
    label: str | Sequence[str] | None = None,
    group: str | None = None,
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
    are used in this process, one trial after the other, and each call makes a new run. A method that a name
    identifies, such as 'my_file.py:fit', is resumed as long as its code, its options, the data and the rest of the
    design are the same; more subsamples extend the run.

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

        Or several of these: a list, or a dictionary by name.
    data
        - A data frame of pandas or polars, a dictionary of columns, or a list of dictionaries, with the columns `text`
          and `label`, or those that the arguments name.
        - A pair: a list of n texts, or features of shape (n, n_features), and n labels; or these and n groups. An
          estimator sees the columns of a data frame of features, such as strings that a `ColumnTransformer` encodes.
          Labels are numbers for a regressor and classes for a classifier; for a function, floats are numbers. If rows
          have any number of labels: 0 or 1 of shape (n, n_labels), or n lists of labels.
        - A `Dataset` of Hugging Face, a `DatasetDict` whose official splits `train` and `test` are kept, the folder to
          which `save_to_disk` wrote one, or a CSV, TSV, JSON, Parquet or Arrow file.
        - A function that returns one of these, or a `peekbench.Dataset`.
        - The name of a task, such as "docstrings.numpy", or a task as in a spec.
        - A dictionary of these by name, or a list of them.
    train, test
        Official train and test split, instead of `data`: two files, or both in another of these forms. Is the score
        inflated that you publish? By default, each fit then trains on all train rows and adapts to all folds of the
        test rows but one (`design: official`). With `num_test`, sets are drawn from the splits.
    extra
        Private texts from the same source as the official ones, if you have any: a file, a list, or another of these
        forms. Their labels are not used, and groups that are in train or test are refused. They take the place of the
        fold that a fit does not adapt to, so the bias is that of the whole test set.
    text, label
        Columns of texts and labels of data frames, files and data sets of Hugging Face. Several columns of labels have
        0 or 1 for each label of a text.
    group
        Column of the groups of rows, such as patients, authors or conversations: no group is in two sets, and the
        interval for other texts is one for other groups.
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
        Other keys of a spec: `design`, or its keys such as `num_subsamples`, by default 20 subsamples of 50 train rows,
        as many of each class, and 200 test rows, or fewer if data have fewer rows; `name`; `seed`; `analyses`;
        `executor`; `tasks` instead of `data`. Or options of data: `class_names`, a list of names or a mapping from
        labels to names; `drop_missing=True`, to drop rows without a text or label; `drop_shared_groups=True`, to drop
        train rows whose groups are in the official test split; `drop_duplicates="near"` or "exact", to keep the first
        of several copies of a row, or none if their labels differ; `test_split`, the split of a `DatasetDict` that is
        scored; and for a file, other options of the data source `files`.

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
    methods = _list_methods(method)
    has_splits = any(part is not None for part in (train, test, extra))
    if len(methods) > 1 and (options or unlabeled_step is not None):
        raise PluginError("options and unlabeled_step are those of one method; measure each in a call of its own")
    chosen = dict(options or {})
    if unlabeled_step is not None:
        chosen["unlabeled_step"] = unlabeled_step
    named_methods = []
    for name, one in methods.items():
        named_methods.append({"use": _find_use(one, name), "options": chosen})
        if name:
            named_methods[-1]["name"] = name
    grader = spec.pop("grader", None)
    design = spec.pop("design", {})
    design_keys = {key: spec.pop(key) for key in list(spec) if key in Design.model_fields}
    table_keys = {key: spec.pop(key) for key in list(spec) if key not in ExperimentSpec.model_fields}
    table_keys |= {option: column for option, column in (("text", text), ("label", label), ("group", group)) if column}
    if has_splits:
        data, table_keys = _join_splits(data, OfficialSplits(train, test, extra), table_keys)
    tasks = list(_make_tasks(spec.pop("tasks", data), list(methods.values()), table_keys))
    for task in tasks:
        if grader is not None:
            task["grader"] = grader
        if "grader" in task:
            task["grader"] = _find_grader(task["grader"])
    forget()  # files may have changed
    held = [
        (task.get("name", ""), load_dataset(task["use"], task.get("options")))
        for task in tasks
        if task["use"] == FILES or _is_held(task["use"])  # in memory, or in a file that the user named
    ]
    for estimator in filter(is_estimator, methods.values()):
        unlabeled_steps(estimator, unlabeled_step, type(estimator).__name__)
    if isinstance(design, Mapping):  # another kind is refused with the spec
        design = {**design, **design_keys}
        if has_splits and "num_test" not in design:
            design = {**OFFICIAL, **design}
        else:
            design = _complete_design(design, held, spec.get("seed", 0))
    parts: dict[str, Any] = {"tasks": tasks, "methods": named_methods, "design": design, **spec}
    if any(_is_held(use) for part in [*tasks, *named_methods] for use in (part["use"], part.get("grader", ""))):
        parts.setdefault("executor", {"use": "local", "options": {"in_process": True}})
    if "name" not in parts:
        parts["name"] = _make_name(parts, [dataset for _, dataset in held])
    if score != "score" or region is not None:  # after the name: another score needs no other trials
        parts["analyses"] = _analyses(parts, list(methods.values()), score, region)
    return run(parts, progress=progress, fresh=fresh)


def _join_splits(data: Any, splits: OfficialSplits, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return official splits as a task of files, which has the options of data, or as data of this session."""
    if data is not None or splits.train is None or splits.test is None:
        near = {name: find_nearest(name, ("train", "test", "extra")) for name in options}
        remedy = "".join(f"; did you mean {meant} in place of {name}?" for name, meant in near.items() if meant)
        raise SpecError(f"give `train` and `test`, or only `data`, from which sets are drawn{remedy}")
    given = {"path": splits.train, "test_path": splits.test, "extra_path": splits.extra}
    given = {name: part for name, part in given.items() if part is not None}
    files = [part for part in given.values() if isinstance(part, str | Path)]
    if not files:
        return splits, options
    if len(files) < len(given):
        raise SpecError(
            f"{str(files[0])!r} is a file, but others of train, test and extra are not; read it, or give files"
        )
    paths = {name: str(Path(file).expanduser().absolute()) for name, file in given.items()}
    return {"use": FILES, "name": "data", "options": {**paths, **options}}, {}


def _make_name(parts: Mapping[str, Any], held: Sequence[Dataset]) -> str:
    """Return the name of a run from its first method and from all on which its trials depend."""
    uses = [method["use"] for method in parts["methods"]]
    first = "methods"
    if len(uses) == 1:
        first = uses[0].rpartition(":")[2].replace(".", "-").strip("_")
    uses += [task["grader"] for task in parts["tasks"] if "grader" in task]
    if any(map(_is_held, uses)):  # of what no hash identifies, each run is new
        return f"{first}-{token_hex(4)}"
    design = parts["design"]
    if isinstance(design, Mapping):
        design = {**design, "num_subsamples": None}  # more subsamples extend the run, which knows its reports
    known = describe_code([use for use in uses if isinstance(use, Code)])
    rows = [fingerprint(dataset) for dataset in held]
    identity = {**parts, "design": design, "executor": None, "known": known, "rows": rows}
    content = json.dumps(identity, sort_keys=True, default=str)
    return f"{first}-{hashlib.sha256(content.encode()).hexdigest()[:DIGITS]}"


def _list_methods(method: Any) -> dict[str, Any]:
    """Return the methods by name; a single one has its own name."""
    if not isinstance(method, Mapping | list | tuple):
        return {"": method}
    if not method:
        raise PluginError("no method is given; give a function, an estimator, a list of them, or a dictionary by name")
    if isinstance(method, Mapping):
        return {str(name): one for name, one in method.items()}
    return {f"{_name_of(one)}-{number}": one for number, one in enumerate(method, start=1)}


def _complete_design(chosen: Mapping[str, Any], held: Sequence[tuple[str, Dataset]], seed: int) -> dict[str, Any]:
    """Return a design with default sizes where none are chosen, and with fewer rows if data in memory have too few."""
    design = {**DESIGN, **chosen}
    for name, dataset in held:
        splits = list(dataset.splits or ())
        num_rows = splits.count("test") or len(dataset.labels)
        num_train = splits.count("train") or num_rows // 3
        if "num_train" not in chosen:
            design["num_train"] = min(design["num_train"], num_train)
        if "num_test" not in chosen and isinstance(design["num_train"], int):
            if not splits:
                num_rows = max(0, num_rows - design["num_train"])
            num_test = num_rows // 2
            if num_test < MIN_TEST:
                raise DataError(
                    f"{len(dataset.labels):,} rows leave {num_test} for each of two test sets, too few for a verdict; "
                    f"give more rows, or choose the sizes, such as design={{'num_train': {num_train}, 'num_test': "
                    f"{max(1, num_test)}}}"
                )
            design["num_test"] = min(design["num_test"], num_test)
            if dataset.groups:
                design["num_test"] = largest_set(dataset, design, seed, name)
    return design


def _make_tasks(data: Any, methods: Sequence[Any], options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield tasks as in a spec: names, files and folders of data, and data of this session."""
    for name, one in _name_tasks(data, options):
        task = _make_task(one, name or "data", methods, options)
        if name:
            task["name"] = name
        yield task


def _name_tasks(data: Any, options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return single data sets with their names, which are empty for those that have a name or are alone."""
    if _is_table(data, options) or _is_component(data):
        return [("", data)]
    if type(data) is dict:  # other mappings are data sets
        return [(str(name), one) for name, one in data.items()]
    if isinstance(data, list) or (isinstance(data, tuple) and all(map(_is_component, data))):
        return [("" if _is_component(one) else f"data-{number}", one) for number, one in enumerate(data, start=1)]
    return [("", data)]


def _make_task(data: Any, name: str, methods: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(data, str | Path) and _is_file(data):
        path = Path(data).expanduser().absolute()
        stem = re.sub(r"[^\w.-]+", "-", path.name, flags=re.ASCII).partition(".")[0].strip("-_") or "data"
        return {"use": FILES, "name": stem, "options": {"path": str(path), **options}}
    if _is_component(data):
        task = dict(data) if isinstance(data, dict) else {"use": str(data)}
        if options:
            with_options = json.dumps({**task, "options": {key: str(value) for key, value in options.items()}})
            raise SpecError(
                f"{', '.join(options)}: no key of a spec or of its design; for options of the "
                f"task, give it as {shorten(with_options, 200)}"
            )
        return task
    if unknown := [key for key in options if key not in DATA_OPTIONS]:
        raise SpecError(
            f"{', '.join(unknown)}: no key of a spec, of its design, or option of data in memory, which are "
            f"{', '.join(DATA_OPTIONS)}"
        )
    dataset = read_held(data, name, methods, **options)
    check_dataset(dataset, name)
    held: dict[str, Any] = {"name": name}
    if dataset.kind == "generation" and not isinstance(dataset.grader, str):
        held["grader"] = dataset.grader  # it is then compared as methods are
        dataset = replace(dataset, grader="exact")
    return {"use": hold(lambda: dataset, "load"), **held}


def _is_table(data: Any, options: Mapping[str, Any]) -> bool:
    """Return whether data are a dictionary of columns, or a list of rows that are dictionaries."""
    labels = options.get("label", "label")
    columns = {options.get("text", "text"), *([labels] if isinstance(labels, str) else labels)}
    rows = [data]
    if type(data) is dict:
        values = [data.get(name) for name in columns]
        if any(isinstance(value, list) or hasattr(value, "dtype") for value in values):
            return True  # although the other column may be missing or misspelled
    elif isinstance(data, list) and data:
        rows = data
    return all(type(row) is dict and columns <= row.keys() for row in rows)


def _is_file(data: str | Path) -> bool:
    """Return whether a path is that of a file of rows, or of a folder that `save_to_disk` has written."""
    path = Path(data)
    return suffix_of(path) in DATA_SUFFIXES or any((path / file).is_file() for file in FILES_OF_SAVED_DATA)


def _is_held(use: str) -> bool:
    """Return whether only this process has what a name means."""
    return isinstance(use, Code) and use.module is not None


def _is_component(data: Any) -> bool:
    return isinstance(data, str | Path) or (isinstance(data, dict) and isinstance(data.get("use"), str))


def _analyses(
    parts: Mapping[str, Any], methods: Sequence[Any], score: str, region: float | None
) -> list[dict[str, Any]]:
    """Return the default analyses of a score, after a test of it for each task.

    Raises
    ------
    SpecError
        If a task does not have the score, there are analyses already, or its region is unknown.
    """
    if "analyses" in parts:
        raise SpecError("score and region are options of analyses; set them there, or leave out `analyses`")
    if score not in ("score", "bits_per_byte"):
        experiment = load(parts)
        tasks = [(task.name, load_dataset(experiment.source(task))) for task in experiment.tasks]
        kinds = {check_score(score, dataset, name, method) for name, dataset in tasks for method in methods}
        score = STORED.get(score, {}).get("/".join(kinds), score)
    if region is None:
        region = default_region(score)
    return [
        {"use": "summary", "options": {"score": score, "region": region}},
        {"use": "permutation", "options": {"score": score}},
    ]


def _name_of(fit: Any) -> str:
    if isinstance(fit, str):
        return fit
    name: str = getattr(fit, "__name__", type(fit).__name__.lower())
    if name.isidentifier():
        return name
    return DEFAULT_NAME


def _find_use(fit: Any, given: str) -> str:
    """Return the name of a method for specs.

    Methods of a session that have different names in a run have different names there, too.
    """
    if isinstance(fit, str):
        return locate_code(fit, Path.cwd())
    make_entry(fit, _name_of(fit))  # raises an error if it is no method
    return _hold(fit, given.replace(".", "-") or _name_of(fit))


def _find_grader(grader: Any) -> str:
    """Return the name of a grader for specs, as `_find_use` does that of a method."""
    if isinstance(grader, str):
        return locate_code(grader, Path.cwd())
    if not callable(grader):
        raise SpecError(f"grader is a {type(grader).__name__}; give a function of an answer and a reference, or a name")
    return _hold(grader, _name_of(grader))


def _hold(thing: Any, given: str) -> Code:
    """Return the name of a function of a module, or one of what only this process has."""
    name = _name_of(thing)
    module = getattr(thing, "__module__", "__main__")
    if inspect.isfunction(thing) and module != "__main__" and getattr(sys.modules.get(module), name, None) is thing:
        return Code(f"{module}:{name}", Path.cwd())
    return hold(thing, given)
