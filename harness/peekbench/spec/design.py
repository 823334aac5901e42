"""The design of an experiment: how many texts are drawn, and how often."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from peekbench.plugins.names import Code, locate_code
from peekbench.records.runs import LookMethod, Settled, Size
from peekbench.records.trials import Draw, Trial
from peekbench.spec.error_messages import problem


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a spec comes from, as the context of its validation: on it depends what its names of code mean."""

    folder: Path
    """Folder where the names of files and modules start."""
    is_stored: bool = False
    """Whether it is read for a report: then only what the report uses must be installed."""
    given: Collection[Code] | None = None
    """The only code that may be imported; by default, all that the spec names."""

    @classmethod
    def of(cls, info: ValidationInfo) -> Origin:
        """Return the origin of the spec that is validated; without a context, it is the current folder."""
        return info.context or cls(Path.cwd())

    def locate(self, use: str) -> str:
        """Return the name of an entry, as a value that can import its code if it may be imported."""
        if self.given is None:
            return locate_code(use, self.folder)
        return next((code for code in self.given if code == use), use)


NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


def _check_name(name: str) -> str:
    if not re.search(NAME, name):
        allowed = "use letters, digits, '_', '-' and '.', and start with a letter or a digit"
        raise problem(f"{reprlib.repr(name)} is not a name; {allowed}")
    return name


Name: TypeAlias = Annotated[
    str, Field(max_length=100, json_schema_extra={"pattern": NAME}), AfterValidator(_check_name)
]


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, int | float) else value


Count: TypeAlias = Annotated[int, Field(ge=1, le=10**7, strict=True)]


def sort_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes in ascending order, none of which may be duplicated."""
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"{list(sizes)} has a number twice; remove one")
    return tuple(sorted(sizes))


_ITEM = {"type": "integer", "minimum": 1}
_ONE_OR_SEVERAL = WithJsonSchema({"anyOf": [_ITEM, {"type": "array", "items": _ITEM, "minItems": 1}]})
Counts: TypeAlias = Annotated[
    tuple[Count, ...], BeforeValidator(_as_tuple), AfterValidator(sort_sizes), _ONE_OR_SEVERAL
]

ALL = "all"


def _read_sizes(value: Any) -> Any:
    if value == () or (isinstance(value, str) and value == ALL):
        return ()
    if value == []:
        raise ValueError(f"give a number, several, or {ALL}")
    return _as_tuple(value)


Sizes: TypeAlias = Annotated[
    tuple[Count, ...],
    BeforeValidator(_read_sizes),
    AfterValidator(sort_sizes),
    PlainSerializer(lambda sizes: sizes or ALL),
    WithJsonSchema({"anyOf": [{"const": ALL}, _ITEM, {"type": "array", "items": _ITEM, "minItems": 1}]}),
]
"""Numbers of rows, or 'all' rows of an official split, which is an empty tuple: `Design.for_task` has their number."""

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dictionary that cannot be changed, for the mappings of a spec; it pickles and serializes like any other.

    Examples
    --------
    >>> FrozenDict({50: 100})
    {50: 100}
    """

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a spec cannot be changed; make a new one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        """Pickle the items."""
        return FrozenDict, (dict(self),)


def freeze(value: Any) -> Any:
    """Return plain values with frozen mappings and with tuples instead of lists.

    Examples
    --------
    >>> freeze({"sizes": [1, 2]})
    {'sizes': (1, 2)}
    """
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(map(freeze, value))
    return value


class SpecModel(BaseModel):
    """Base class of the models of a spec."""

    # Validators are built at the first use: that of a whole spec contains those of its parts.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, use_attribute_docstrings=True)


MIN_SUBSAMPLES = 2
"""Subsamples per task at the first look; with one, there is no interval."""


class Stop(SpecModel):
    """Planned looks, and the verdicts at which a run stops early.

    Examples
    --------
    >>> Stop(looks=4).sizes(100, largest=100)
    (25, 50, 75, 100)
    >>> Stop(looks=[10, 30]).sizes(50, largest=100)
    (5, 15, 50)
    """

    looks: (
        Annotated[int, Field(ge=2, le=1000, strict=True)]
        | Annotated[tuple[Count, ...], Field(min_length=1), AfterValidator(sort_sizes)]
    ) = 5
    """Number of looks, evenly spaced up to `num_subsamples` and at least two subsamples apart; or the numbers of
    subsamples after which to look, such as [10, 20, 50]. With several `num_test`, numbers refer to the largest
    `num_subsamples`, and the others follow in proportion."""
    method: LookMethod = "group_sequential"
    """How verdicts account for repeated looks: 'group_sequential' (Lan-DeMets, resembles O'Brien-Fleming) has the
    highest power for a fixed maximum of subsamples; 'confidence_sequence' has wider intervals, but subsamples may be
    added without end."""
    at: Annotated[tuple[Settled, ...], Field(min_length=1)] = ("biased", "equivalent")
    """Stop when the verdict on every method, except controls, is one of these."""

    def fractions(self, num_subsamples: int) -> tuple[float, ...]:
        """Return the share of a maximum number of subsamples at each look; the last one is 1."""
        if isinstance(self.looks, int):
            count = max(1, min(self.looks, num_subsamples // MIN_SUBSAMPLES))
            return tuple(number / count for number in range(1, count + 1))
        early = [size / num_subsamples for size in self.looks if size < num_subsamples]
        return (*early, 1.0)

    def sizes(self, num_subsamples: int, largest: int) -> tuple[int, ...]:
        """Return the number of subsamples at each look, at a test size whose maximum can differ from the largest."""
        sizes = (max(MIN_SUBSAMPLES, math.ceil(share * num_subsamples - 1e-9)) for share in self.fractions(largest))
        return tuple(min(size, num_subsamples) for size in sizes)


TO_STOP = BeforeValidator(lambda stop: None if stop == "none" else stop, json_schema_input_type=Stop | Literal["none"])
OFFICIAL: Mapping[str, Any] = {
    "num_train": ALL, "num_test": ALL, "folds": 5, "num_subsamples": 20, "train": "natural"
}  # fmt: skip
"""What `design: official` means: the score of the official test split, after training on the official train split."""
TrainShares: TypeAlias = Literal["balanced", "natural"]
Repeats: TypeAlias = Count | dict[Annotated[int, Field(ge=1)], Count]
MAX_SETS = 20


class Design(SpecModel):
    """Sizes and number of the subsamples. The design points are all pairs of `num_train` and `num_test`.

    Examples
    --------
    >>> design = Design(num_train=(50, 100), num_test=(200,), num_subsamples=20)
    >>> list(design.points())
    [(50, 200), (100, 200)]
    """

    num_train: Sizes
    """Number of labeled train texts, one number or several; `all`: those of the official train split."""
    num_test: Sizes
    """Number of test texts and of extra texts, one number or several; `all`: the official test split, with `folds`."""
    folds: Annotated[Counts, Field(exclude_if=lambda folds: not folds)] = ()
    """Number of folds of the official test split, one number or several. Each fit adapts to all folds but one, and
    predicts all of them: in the arm `extra` the fold that it did not adapt to, in the arm `test` the others. So no
    extra texts are needed, and all test texts are scored. Each subsample is another division into folds."""
    num_unlabeled: Count | None = Field(default=None, exclude_if=lambda number: number is None)
    """Number of unlabeled texts of each fit in the arms `extra` and `test`, by default `num_test`. The further ones are
    the same in all fits of a trial: no train, extra or test texts, but drawn like them."""
    num_subsamples: Annotated[Repeats, AfterValidator(freeze)]
    """Largest number of subsamples, or one number for each `num_test`: {50: 100, 500: 20}. The run stops before if its
    verdicts are settled, see `stop`."""
    train: TrainShares = "balanced"
    """Classes of train texts. balanced: floor(num_train / classes) of each class. natural: drawn at random like test
    texts, but at least one of each class. Regression tasks are always drawn at random."""
    crossover: Literal[False] | Annotated[int, Field(ge=2, le=MAX_SETS, strict=True)] = 2
    """Crossover scoring: number of exchangeable sets, each of which is the test set of one fit and an extra set of the
    others, so that the differences between sets and between fits cancel. false: only one set is scored."""
    stop: Annotated[Stop | None, TO_STOP] = Stop()
    """Planned looks at the results, at which the run stops if its verdicts are settled; none: the run has
    `num_subsamples`, whatever the results."""

    @model_validator(mode="before")
    @classmethod
    def _expand_official(cls, value: Any) -> Any:
        if value == "official":
            return dict(OFFICIAL)
        if isinstance(value, str):
            raise problem(f"{value!r} is not a design; write official, or a mapping with num_train and num_test")
        return value

    @model_validator(mode="after")
    def _check_folds(self) -> Design:
        if self.folds and self.num_test:
            raise problem("divide the official test split; set num_test to all, or remove folds", "folds")
        if not self.folds and not self.num_test:
            raise problem(
                "is all, which leaves no extra texts; add folds, such as `folds: 10`, or choose a number", "num_test"
            )
        if self.folds and self.num_unlabeled:
            raise problem("cannot be combined with folds, which use all test texts; remove one", "num_unlabeled")
        for number in self.folds:
            if not 2 <= number <= MAX_SETS:
                raise problem(f"{number} is not a number of folds; use 2 to {MAX_SETS}", "folds")
        return self

    @field_validator("num_unlabeled")
    @classmethod
    def _check_unlabeled(cls, number: int | None, info: ValidationInfo) -> int | None:
        sizes = info.data.get("num_test", ())
        if number and sizes and number < sizes[-1]:
            raise ValueError(
                f"{number} is smaller than num_test {sizes[-1]}, whose texts are among them; use at least {sizes[-1]}, "
                "or a smaller num_test"
            )
        return number

    @model_validator(mode="after")
    def _check_each_size_has_repeats(self) -> Design:
        if isinstance(self.num_subsamples, dict) and set(self.num_subsamples) != set(self.num_test):
            raise problem(
                f"has entries for {sorted(self.num_subsamples)}, num_test is {list(self.num_test)}; give one entry for "
                f"each num_test, {list(self.num_test)}, or one number for all",
                "num_subsamples",
            )
        return self

    def repeats(self, num_test: int) -> int:
        """Return the number of subsamples at a test size."""
        if isinstance(self.num_subsamples, dict):
            return self.num_subsamples[num_test]
        return self.num_subsamples

    @property
    def num_sets(self) -> int:
        """Number of exchangeable sets that are drawn beside the train set."""
        return self.crossover or 2

    def num_shared(self, num_test: int) -> int:
        """Return the number of unlabeled texts that all fits of a trial share, in addition to those of a set."""
        return (self.num_unlabeled or num_test) - num_test

    @property
    def largest(self) -> int:
        """Largest number of subsamples of a test size."""
        if isinstance(self.num_subsamples, dict):
            return max(self.num_subsamples.values())
        return self.num_subsamples

    def look_fractions(self) -> tuple[float, ...]:
        """Return the share of the subsamples at each planned look; (1.0,) if none is planned."""
        if self.stop is None:
            return (1.0,)
        return self.stop.fractions(self.largest)

    def split_by_looks(self, num_subsamples: int) -> tuple[int, ...]:
        """Return the part of a number of subsamples at each planned look, of which the last has all."""
        if self.stop is None:
            return (num_subsamples,)
        return self.stop.sizes(num_subsamples, self.largest)

    def at_look(self, number: int) -> Design:
        """Return the design as far as a look, counted from 1."""

        def cut(repeats: int) -> int:
            return self.split_by_looks(repeats)[number - 1]

        if isinstance(self.num_subsamples, int):
            return self.model_copy(update={"num_subsamples": cut(self.num_subsamples)})
        sizes = {num_test: cut(repeats) for num_test, repeats in self.num_subsamples.items()}
        return self.model_copy(update={"num_subsamples": freeze(sizes)})

    @property
    def num_looks(self) -> int:
        """Number of planned looks, of which the last is at all subsamples; 1 if none is planned."""
        return len(self.look_fractions())

    def look_number(self, subsamples: int | None) -> int | None:
        """Return the number of the look after a number of subsamples at the largest size, from 1; None if none is."""
        sizes = self.split_by_looks(self.largest)
        if subsamples not in sizes:
            return None
        return sizes.index(subsamples) + 1

    def points(self) -> Iterator[tuple[int, int]]:
        """Iterate over the design points, pairs (num_train, num_test)."""
        return product(self.num_train, self.num_test)

    def sizes_of_folds(self, num_rows: int) -> tuple[int, ...]:
        """Return the number of texts that a fit adapts to, for each number of folds of a test split.

        Examples
        --------
        >>> Design(num_train="all", num_test="all", folds=(2, 10), num_subsamples=4).sizes_of_folds(1000)
        (500, 900)
        """
        return tuple(num_rows - num_rows // folds for folds in self.folds)

    def num_folds(self, num_test: int) -> int:
        """Return the number of folds by which fits adapt to a number of texts; 0 without folds."""
        return self.folds[self.num_test.index(num_test)] if self.folds else 0

    def for_task(self, num_train: Sequence[int], num_test: Sequence[int], num_subsamples: int | None) -> Design:
        """Return the design of a task with its own sizes and subsamples, if it has any.

        Its looks are those of the whole design, see `split_by_looks`.
        """
        own = {
            "num_train": tuple(sorted(num_train)), "num_test": tuple(sorted(num_test)), "num_subsamples": num_subsamples
        }  # fmt: skip
        return self.model_copy(update={name: value for name, value in own.items() if value})


def designs_by_task(spec: Mapping[str, Any], stopped_at: int | None = None) -> dict[str, Design]:
    """Return the design of each task of a stored spec, up to the planned look that ended its run, if one did.

    A look is given by its number of subsamples at the largest size.
    """
    whole = design = Design.model_validate(spec["design"])
    number = whole.look_number(stopped_at)
    if number is not None:
        design = whole.at_look(number)
    designs = {}
    for task in spec["tasks"]:
        own = task.get("num_subsamples")
        if own is not None and number is not None:
            own = whole.split_by_looks(own)[number - 1]
        designs[task["name"]] = design.for_task(task.get("num_train", ()), task.get("num_test", ()), own)
    return designs


def list_trials(designs: Mapping[str, Design], methods: Sequence[str]) -> Iterator[Trial]:
    """Yield every trial, subsample by subsample.

    In this order, a run that is stopped early is balanced over tasks and methods.

    Parameters
    ----------
    designs
        Design of each task, by name.
    methods
        Names of the methods.
    """
    points = {
        task: [(num_train, num_test, design.repeats(num_test)) for num_train, num_test in design.points()]
        for task, design in designs.items()
    }
    max_repeats = max(repeats for sizes in points.values() for _, _, repeats in sizes)
    for subsample in range(max_repeats):
        for task, sizes in points.items():
            for num_train, num_test, repeats in sizes:
                if subsample < repeats:
                    draw = Draw(task, num_train, num_test, subsample)
                    for method in methods:
                        yield Trial(draw, method)


def describe_look(
    spec: Mapping[str, Any],
    recorded: Sequence[Mapping[str, Any]],
    trials: Mapping[Size, int],
    stopped_at: int | None = None,
) -> dict[str, Any]:
    """Describe a look that no design planned for a store, as JSON values.

    `stopped_at` is the number of subsamples at the planned look that ended the run, if one did.
    """
    design = Design.model_validate(spec["design"])
    planned: dict[Size, int] = {}
    for of_task in designs_by_task(spec).values():
        for num_train, num_test in of_task.points():
            for method in spec["methods"]:
                key = (method["name"], num_train, num_test)
                planned[key] = planned.get(key, 0) + of_task.repeats(num_test)
    number = design.look_number(stopped_at)  # a planned look has its share without rounding
    share = design.look_fractions()[number - 1] if number else sum(trials.values()) / sum(planned.values())
    maximum = first_maximum(recorded, design)
    return {
        "method": getattr(design.stop, "method", ""),
        "fraction": share * design.largest / maximum,
        "maximum": maximum,
        "trials": [[*key, count] for key, count in sorted(trials.items())],
        "planned": [[*key, count] for key, count in sorted(planned.items())],
    }


def first_maximum(recorded: Sequence[Mapping[str, Any]], design: Design) -> int:
    """Return the maximum number of subsamples that the design had at the first look.

    The levels of an open-ended confidence sequence depend on it, so it must not change when subsamples are added.
    """
    if recorded:
        return int(recorded[0]["maximum"])
    return design.largest
