"""Contract checks for methods, data sources and analyzers; for a plugin's own tests, and behind `peekbench check`.

Each check raises `ContractError`, which says what is wrong and what to do. `check_method` and its like run all of them
and say which passed.
"""

from __future__ import annotations

import copy
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from peekbench import plugins
from peekbench.contract import check_predictions
from peekbench.data import check as check_dataset
from peekbench.data import fingerprint, remember
from peekbench.entries import AnalyzerEntry, DataSourceEntry, MethodEntry
from peekbench.errors import ContractError
from peekbench.protocols import Options
from peekbench.records import (
    Analysis,
    Context,
    Dataset,
    FloatArray,
    Folders,
    Inputs,
    Labeled,
    Predictor,
    SourceRef,
    Task,
)

if TYPE_CHECKING:
    import pandas as pd

HEAVY = (
    "datasets", "gensim", "matplotlib", "pandas", "peft", "pymc", "ray", "scipy", "sklearn", "torch", "transformers",
)  # fmt: skip
# Batches of other sizes make other BLAS kernels do the work, which round differently; adapting to a batch shows by far.
TOLERANCE = 1e-4
SAMPLE_SOURCE = "peekbench.testing.sample"


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """How one check ended."""

    name: str
    passed: bool
    message: str = ""
    """What is wrong; empty where it passed."""


@dataclass(frozen=True, slots=True)
class Case:
    """A method with data to try it on."""

    use: str
    entry: MethodEntry
    options: Options
    task: Task
    train: Labeled
    unlabeled: Inputs
    other: Inputs
    """Unlabeled inputs of another draw."""
    test: Inputs
    folders: Folders

    def fit(self, unlabeled: Inputs | None, *, seed: int = 1, options: Options | None = None) -> Predictor:
        context = Context(seed, 1, "auto", self.folders)
        predictor = self.entry.method(
            unlabeled, self.train, self.task, options=options or self.options, context=context
        )
        if not isinstance(predictor, Predictor):
            raise ContractError(f"it returned a {type(predictor).__name__}; return peekbench.Predictor(predict)")
        return predictor

    def predict(self, unlabeled: Inputs | None, *, seed: int = 1, options: Options | None = None) -> FloatArray:
        import numpy as np

        predictions = self.fit(unlabeled, seed=seed, options=options).predict(self.test)
        check_predictions(predictions, len(self.test), self.task)
        return np.array(predictions, dtype=np.float64)


def sample_texts(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Made-up texts of three classes, told apart by some of their words, for checks without any data at hand."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    labels = [row % 3 for row in range(num_rows)]
    texts = [
        " ".join(
            f"common{rng.randrange(80)}" if rng.random() < 0.6 else f"{'abc'[label]}word{rng.randrange(25)}"
            for _ in range(rng.randrange(6, 16))
        )
        + f" number{row}"
        for row, label in enumerate(labels)
    ]
    instruction = "The text is made of invented words. Answer with its class."
    return Dataset(texts, labels, ("first", "second", "third"), instruction=instruction)


def sample_numbers(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """A made-up linear regression on four features."""
    import numpy as np

    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_rows, 4))
    return Dataset(features, features @ np.arange(1.0, 5.0) + rng.normal(size=num_rows), kind="regression")


def check_method(
    use: str, options: Mapping[str, Any] | None = None, *, dataset: Dataset | None = None
) -> list[CheckOutcome]:
    """Put a method through every check.

    Parameters
    ----------
    use
        Its name in specs, `plugin.method`.
    options
        As in a spec.
    dataset
        At least 120 rows to try it on; by default invented ones. A method that looks its task's data up again
        (`load_dataset(task.source)`) finds these rows.

    Raises
    ------
    PluginError, SpecError
        Where there is no such method, or the options do not fit.
    """
    from peekbench.spec import MethodSpec, make_use

    spec = make_use(MethodSpec, use, options)
    with TemporaryDirectory() as folder:
        case = make_case(spec.use, spec.entry, spec.options, Path(folder), dataset)
        return [_outcome(name, check, case) for name, check in METHOD_CHECKS.items()]


def make_case(use: str, entry: MethodEntry, options: Options, folder: Path, dataset: Dataset | None = None) -> Case:
    """Divide a data set into what the checks need: 60 train rows, the rest by turns for three sets."""
    import numpy as np

    from peekbench.worker import take

    if dataset is None:
        dataset = sample_texts() if "classification" in entry.task_kinds else sample_numbers()
    source = SourceRef(SAMPLE_SOURCE, {"rows": fingerprint(dataset)}, folder)
    remember(source, dataset)
    order = np.random.default_rng(0).permutation(len(dataset.labels))
    train, rest = order[:60], order[60:]
    train_labels = np.asarray(dataset.labels)[train]
    train_labels.flags.writeable = False
    return Case(
        use=use,
        entry=entry,
        options=options,
        task=Task("sample", dataset.kind, tuple(dataset.class_names), dataset.instruction, source),
        train=Labeled(take(dataset.inputs, train), train_labels),
        unlabeled=take(dataset.inputs, rest[0::3]),
        other=take(dataset.inputs, rest[1::3]),
        test=take(dataset.inputs, rest[2::3]),
        folders=Folders(spec=folder, cache=folder),
    )


def _outcome(name: str, check: Callable[[Any], None], case: Any) -> CheckOutcome:
    try:
        check(case)
    except ContractError as error:
        return CheckOutcome(name, False, str(error))
    except Exception as error:  # a plugin's own fault is a finding, and the other checks go on
        return CheckOutcome(name, False, f"it raised {type(error).__name__}: {error}")
    return CheckOutcome(name, True)


def _same(one: FloatArray, other: FloatArray, tolerance: float = 0.0) -> bool:
    import numpy as np

    return one.shape == other.shape and bool(np.all(np.abs(one - other) <= tolerance))


# Methods


def check_base_arm(case: Case) -> None:
    """It works without unlabeled inputs."""
    case.predict(None)


def check_extra_arm(case: Case) -> None:
    """It works with unlabeled inputs."""
    case.predict(case.unlabeled)


def check_same_seed(case: Case) -> None:
    """The same seed gives the same numbers, to the last bit."""
    for unlabeled in (None, case.unlabeled):
        if not _same(case.predict(unlabeled), case.predict(unlabeled)):
            raise ContractError(
                "two fits with one seed give different predictions; draw all random numbers from context.seed"
            )


def check_refit(case: Case) -> None:
    """A fit leaves nothing behind for the next one."""
    first = case.predict(case.unlabeled)
    case.predict(case.other, seed=2)
    case.predict(None, seed=3)
    if not _same(first, case.predict(case.unlabeled)):
        raise ContractError(
            "a fit gives other predictions after another fit; keep no state between fits, in the module or in a model"
        )


def check_earlier_predictor(case: Case) -> None:
    """A later fit leaves an earlier predictor alone."""
    import numpy as np

    predictor = case.fit(case.unlabeled)
    before = np.array(predictor.predict(case.test), dtype=np.float64)
    case.fit(case.other, seed=2)
    if not _same(before, np.array(predictor.predict(case.test), dtype=np.float64)):
        raise ContractError("a predictor changes when the method is fitted again; give each fit a model of its own")


def check_subset_invariance(case: Case) -> None:
    """What is predicted for an input does not depend on which others are predicted with it."""
    import numpy as np

    predictor = case.fit(case.unlabeled)
    together = np.array(predictor.predict(case.test), dtype=np.float64)
    half = len(case.test) // 2
    apart = np.concatenate([predictor.predict(part) for part in (case.test[:half], case.test[half:])])
    single = np.array(predictor.predict(case.test[:1]), dtype=np.float64)
    if not (_same(together, apart, TOLERANCE) and _same(together[:1], single, TOLERANCE)):
        raise ContractError(
            "predictions change with the texts that are predicted together, so predict adapts to its batch; "
            "adapt to `unlabeled` in the fit, and predict each input by itself"
        )


def check_order_invariance(case: Case) -> None:
    """What is predicted for an input does not depend on its place."""
    import numpy as np

    predictor = case.fit(case.unlabeled)
    forwards = np.array(predictor.predict(case.test), dtype=np.float64)
    backwards = np.array(predictor.predict(case.test[::-1]), dtype=np.float64)[::-1]
    if not _same(forwards, backwards, TOLERANCE):
        raise ContractError("predictions change with the order of the texts; predict each input by itself")


def check_random_state(case: Case) -> None:
    """Global random generators are neither used nor changed."""
    import numpy as np

    seen: list[FloatArray] = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
        seen.append(case.predict(case.unlabeled))
        after = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
        if before != after:
            raise ContractError(
                "it changes the state of `random` or `numpy.random`; use a generator of its own, "
                "numpy.random.default_rng(context.seed) say"
            )
    if not _same(seen[0], seen[1]):
        raise ContractError("its numbers depend on the state of `random` or `numpy.random`; use context.seed instead")


def check_inputs_untouched(case: Case) -> None:
    """What it is given stays as it was, even where nothing keeps it from changing it."""
    import numpy as np

    given = copy.deepcopy(case)
    given.train.labels.flags.writeable = True
    given.predict(given.unlabeled)
    for before, after in (
        (case.train.inputs, given.train.inputs),
        (case.train.labels, given.train.labels),
        (case.unlabeled, given.unlabeled),
        (case.test, given.test),
    ):
        if not np.array_equal(np.array(before), np.array(after)):
            raise ContractError("it changes the inputs or labels that it is given; work on copies")


def check_unlabeled_options(case: Case) -> None:
    """Options declared to have no effect without unlabeled inputs have none."""
    names = sorted(case.entry.unlabeled_options)
    unknown = [name for name in names if name not in type(case.options).model_fields]
    if unknown:
        raise ContractError(f"unlabeled_options names {unknown[0]!r}, which is no option; correct the name")
    before = case.predict(None)
    for name in names:
        varied = _vary(case.options, name)
        if varied is not None and not _same(before, case.predict(None, options=varied)):
            raise ContractError(
                f"option {name!r} changes the base arm, though unlabeled_options says that it does not; remove it there"
            )


def _vary(options: Options, name: str) -> Options | None:
    """The same options with one other value, or None where none was found that fits."""
    value = getattr(options, name)
    others: list[Any] = []
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, int | float):
        others = [value + 1, value * 2, value / 2, value - 1]
    for other in others:
        try:
            return type(options).model_validate({**options.model_dump(), name: type(value)(other)})
        except ValueError:
            continue
    return None


def check_shared_base(case: Case) -> None:
    """Methods of the plugin that name the same base predict the same in the base arm."""
    plugin, own = plugins.split_use(case.use)
    before = case.predict(None)
    for name, entry in plugins.load(plugin).offers.get("method", {}).items():
        if not (isinstance(entry, MethodEntry) and case.entry.base and entry.base == case.entry.base and name != own):
            continue
        shared = {
            key: value for key, value in case.options.model_dump().items() if key not in case.entry.unlabeled_options
        }
        try:
            options = entry.options.model_validate(shared)
        except ValueError:
            continue  # then their base keys differ, and nothing is shared
        if not _same(before, replace(case, entry=entry).predict(None, options=options)):
            raise ContractError(
                f"{plugin}.{name} names the same base but predicts otherwise; give it a base of its own"
            )


def check_light_import(case: Case) -> None:
    """Importing its plugin imports no heavy library."""
    plugin, _ = plugins.split_use(case.use)
    check_module_light(plugins.load(plugin).module)


METHOD_CHECKS: Mapping[str, Callable[[Case], None]] = {
    "fits and predicts without unlabeled inputs": check_base_arm,
    "fits and predicts with unlabeled inputs": check_extra_arm,
    "same seed, same numbers": check_same_seed,
    "a fit leaves nothing for the next one": check_refit,
    "a later fit leaves earlier predictors alone": check_earlier_predictor,
    "predictions do not depend on what else is predicted": check_subset_invariance,
    "predictions do not depend on the order": check_order_invariance,
    "global random state neither used nor changed": check_random_state,
    "inputs and labels left as they were": check_inputs_untouched,
    "unlabeled_options have no effect on the base arm": check_unlabeled_options,
    "methods that share a base agree on it": check_shared_base,
    "importing the plugin is light": check_light_import,
}


def check_module_light(module: str) -> None:
    """Importing a module brings in none of the libraries in `HEAVY`."""
    code = f"import sys, {module}; print(*sorted({set(HEAVY)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise ContractError(f"{module} cannot be imported by itself: {done.stderr.strip().splitlines()[-1]}")
    if done.stdout.strip():
        raise ContractError(
            f"importing {module} imports {', '.join(done.stdout.split())}; do that in the functions that use them"
        )


# Data sources and analyzers


def check_data_source(entry: DataSourceEntry, options: Options, folders: Folders) -> None:
    """It gives valid rows, the same ones every time."""
    first, again = (entry.load(options=options, folders=folders) for _ in range(2))
    if not isinstance(first, Dataset):
        raise ContractError(f"{entry.name} returned a {type(first).__name__}; return peekbench.Dataset")
    check_dataset(first, entry.name)
    if fingerprint(first) != fingerprint(again):
        raise ContractError(f"{entry.name} gives other rows, or another order, when asked again; sort them, seed it")


def check_analyzer(entry: AnalyzerEntry, options: Options, results: pd.DataFrame) -> None:
    """It returns an analysis, the same every time, and leaves the results table alone."""
    before = results.copy(deep=True)
    first, again = (entry.analyze(results, options=options) for _ in range(2))
    if not isinstance(first, Analysis):
        raise ContractError(f"{entry.name} returned a {type(first).__name__}; return peekbench.Analysis")
    if repr(first) != repr(again):
        raise ContractError(f"{entry.name} concludes something else when asked again; take the seed from its options")
    if not before.equals(results):
        raise ContractError(f"{entry.name} changes the results table; work on a copy")
