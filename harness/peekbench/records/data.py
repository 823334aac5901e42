"""Tasks and their rows, what data sources return and methods receive; the answers to test texts; tables of scores."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

from peekbench.errors import Argument, ContractError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray: TypeAlias = NDArray[np.bool_]
    """Array of truth values, such as one for each row of a task.

    Examples
    --------
    >>> def select(inputs: Inputs, is_selected: BoolArray) -> Inputs:
    ...     return [text for text, chosen in zip(inputs, is_selected, strict=True) if chosen]
    >>> select(["warm", "late"], [True, False])
    ['warm']
    """

    IntArray: TypeAlias = NDArray[np.int64]
    """Array of whole numbers, such as the labels of a classification task.

    Examples
    --------
    >>> import numpy as np
    >>> def count_classes(labels: IntArray, num_classes: int) -> IntArray:
    ...     return np.bincount(labels, minlength=num_classes)
    >>> count_classes(np.array([0, 2, 0]), 3).tolist()
    [2, 0, 1]
    """

    FloatArray: TypeAlias = NDArray[np.floating[Any]]
    """Array of numbers, such as probabilities of shape (n, n_classes).

    Examples
    --------
    >>> import numpy as np
    >>> def center(features: FloatArray) -> FloatArray:
    ...     return features - features.mean(axis=0)
    >>> center(np.array([[1.0], [3.0]])).tolist()
    [[-1.0], [1.0]]
    """

    Inputs: TypeAlias = Sequence[str] | FloatArray
    """Texts, or rows of features of shape (n, n_features).

    Examples
    --------
    >>> def longest(inputs: Inputs) -> int:
    ...     return max(len(text) for text in inputs)
    >>> longest(["a text", "a longer text"])
    13
    """

else:  # plugins import these names at run time, when annotations are not evaluated
    BoolArray = IntArray = FloatArray = Inputs = Any


TaskKind: TypeAlias = Literal["classification", "multilabel", "regression", "language_modeling", "generation"]
"""What a method predicts: a class, any number of labels, a number, the text itself, or the answer to a prompt."""

Grader: TypeAlias = Callable[[str, str], float]
"""Grades an answer by a reference: returns a number from 0 to 1, or whether the answer is right."""

Reference: TypeAlias = str | tuple[str, ...]
"""Text to which the answer to a prompt is compared, or several of which the best grade counts."""

InputKind: TypeAlias = Literal["texts", "features"]
"""What the inputs of a task are: texts, or rows of numbers.

Examples
--------
>>> import numpy as np
>>> Dataset(np.zeros((2, 3)), [0, 1], ("low", "high")).input_kind
'features'
"""

Split: TypeAlias = Literal["train", "test"]
"""Part of a data set that its authors set aside for training or for testing."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders that a plugin may read from and write to.

    Examples
    --------
    >>> folders = Folders(spec=Path("specs"), cache=Path("cache"))
    >>> (folders.spec / "tickets.csv").as_posix()
    'specs/tickets.csv'
    """

    spec: Path
    """Folder of the spec file. Relative paths in options start here."""
    cache: Path
    """Folder for results that are expensive to compute and safe to delete."""


@dataclass(frozen=True, slots=True)
class SourceRef:
    """The data source of a task with its options, from which the task's rows can be loaded."""

    use: str
    """Name of the data source: 'plugin.source'."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options as in the spec."""
    folder: Path = Path()
    """Folder that relative paths in the options start from."""
    kind: Literal["language_modeling"] | None = None
    """Kind of the task, if it is not that of the data: 'language_modeling' leaves out the labels of its texts."""


@dataclass(frozen=True, slots=True)
class Task:
    """The facts about a task that a method receives.

    Examples
    --------
    >>> task = Task("tickets", "classification", ("bug", "question"), "", SourceRef("files"))
    >>> task.num_classes
    2
    """

    name: str
    """Name of the task in the spec and in tables."""
    kind: TaskKind
    """Kind of the task: 'classification', 'multilabel', 'regression', 'language_modeling' or 'generation'."""
    class_names: tuple[str, ...]
    """Names of the classes 0, 1, ..., or of the labels of a multi-label task; empty for other kinds of tasks."""
    instruction: str
    """One or two sentences for prompts that say what a text is and what to answer; may be empty."""
    source: SourceRef
    """Pass it to `peekbench.load_dataset` to load the task's full data, test rows included."""
    grader: Grader | None = None
    """Grades generated answers; None for other kinds of tasks."""

    @property
    def num_classes(self) -> int:
        """Number of classes, or of labels of a multi-label task; 0 for other kinds of tasks."""
        return len(self.class_names)

    def grade(self, answer: str, reference: Reference) -> float:
        """Return the grade of an answer by a reference, or the best one by several, from 0 to 1, or a `ContractError`.

        Examples
        --------
        >>> from peekbench.plugins.graders import number
        >>> Task("sums", "generation", (), "", SourceRef("files"), number).grade("2 + 2 = 4", ("4", "four 4s"))
        1.0
        """
        assert self.grader is not None
        if not isinstance(reference, str):
            return max(self.grade(answer, text) for text in reference)
        try:
            return float(self.grader(answer, reference))
        except ValueError as error:  # of a grader of peekbench that cannot read the reference
            raise ContractError(f"task {self.name}: {error}") from error


@dataclass(frozen=True, slots=True)
class Dataset:
    """All rows of a task, from which train, extra and test rows are drawn.

    Examples
    --------
    >>> dataset = Dataset(["It crashes.", "How do I log in?"], [0, 1], ("bug", "question"))
    >>> dataset.kind
    'classification'
    >>> Dataset(["It crashes.", "How do I log in?"], kind="language_modeling").labels
    (11, 16)
    >>> Dataset(["2 + 2 =", "3 + 4 ="], ["4", "7"], kind="generation", grader="number").labels
    ('4', '7')
    >>> labels = [[1, 1], [0, 0]]  # the first text has both labels, the second one none
    >>> Dataset(["It crashes.", "How do I log in?"], labels, ("bug", "urgent"), "multilabel").kind
    'multilabel'
    """

    inputs: Inputs
    """Texts, length n, or features of shape (n, n_features). Any sequence is accepted, also a memory-mapped one. For an
    estimator, `peekbench.measure` keeps a data frame of features."""
    labels: Sequence[int] | Sequence[Sequence[int]] | Sequence[Reference] | IntArray | FloatArray = ()
    """Shape (n,): class indices 0..C-1, or the targets of a regression. Shape (n, n_labels) for 'multilabel': 1 if the
    text has the label, otherwise 0. In language modeling, the text itself is to be predicted, and its number of bytes
    in UTF-8 takes the place of the label; leave it empty. In generation, the reference of each prompt: a text, or
    several of which the best grade of the answer counts."""
    class_names: tuple[str, ...] = ()
    """Names of the classes 0, 1, ..., or of the labels of a multi-label task; empty for other kinds of tasks."""
    kind: TaskKind = "classification"
    """Kind of the task: 'classification', 'multilabel', 'regression', 'language_modeling' or 'generation'."""
    instruction: str = ""
    """One or two sentences for prompts that say what a text is and what to answer."""
    fingerprint: str = ""
    """Identifier of the content. If it is empty, peekbench hashes inputs and labels."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts for readers of the run, JSON-serializable. Reports show `dropped`, the number of dropped rows by
    reason, and `version`, or otherwise `revision`, a commit."""
    splits: Sequence[Split] = ()
    """'train' or 'test' for each row, length n, to keep official splits: train rows are then drawn from 'train', extra
    and test rows from 'test'. If it is empty, all sets are drawn from all rows."""
    groups: Sequence[int | str] = ()
    """Identifier of the group of each row, such as its patient, author or conversation, length n: rows of a group never
    stand in two sets. If it is empty, every row is a group of its own."""
    extra: Inputs = ()
    """Private inputs without labels, in the form of `inputs`, which designs with folds need not have: those that take
    the place of the fold that a fit does not adapt to. Their rows are numbered from n."""
    grader: str | Grader = "exact"
    """Grades answers in generation: 'exact', 'number', 'choice', or a function of an answer and a reference. The key
    `grader` of a task takes precedence."""

    @property
    def input_kind(self) -> InputKind:
        """What the inputs are: 'texts', in any sequence, or 'features', in an array."""
        return "texts" if isinstance(self.inputs, Sequence) else "features"

    def __post_init__(self) -> None:
        """Count the bytes of each text in language modeling; let a reference of generation be a text or a tuple."""
        if self.kind == "language_modeling" and not len(self.labels):
            object.__setattr__(self, "labels", count_bytes(self.inputs))
        if self.kind == "generation":
            references = (tuple(label) if isinstance(label, list | tuple) else label for label in self.labels)
            object.__setattr__(self, "labels", tuple(references))


@dataclass(frozen=True, slots=True)
class OfficialSplits:
    """Train and test split that a caller holds, each in any form of data that `peekbench.measure` reads.

    Examples
    --------
    >>> splits = OfficialSplits(train=(["It crashes."], ["bug"]), test=(["How do I log in?"], ["question"]))
    >>> splits.test[1]
    ['question']
    """

    train: Any
    test: Any
    extra: Any = None
    """Private texts without labels."""


def as_texts(reference: Reference) -> tuple[str, ...]:
    """Return a text alone in a tuple, and several as they are."""
    return (reference,) if isinstance(reference, str) else reference


def count_bytes(texts: Inputs) -> tuple[int, ...]:
    """Return the number of bytes of each text in UTF-8."""
    return tuple(len(text.encode("utf-8", "surrogatepass")) for text in texts)


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What is known of a task without loading it; unknown facts are None or empty.

    Examples
    --------
    >>> TaskFacts(num_classes=2, license="CC BY 4.0").num_rows is None
    True
    """

    num_classes: int | None = None
    """Number of classes."""
    num_rows: int | None = None
    """Number of rows of the data."""
    characters: tuple[int, int] | None = None
    """25th and 75th percentile of the texts' lengths."""
    license: str = ""
    """License of the data."""
    class_names: tuple[str, ...] = ()
    """Names of the labels 0, 1, ..."""
    instruction: str = ""
    """Sentences for prompts, as `Dataset.instruction`."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts as `Dataset.details`, shown if the task cannot be loaded."""


@dataclass(frozen=True, slots=True)
class Labeled:
    """Inputs with their labels, of equal length.

    Examples
    --------
    >>> import numpy as np
    >>> train = Labeled(("It crashes.", "How do I log in?"), np.array([0, 1]))
    >>> train.labels.tolist()
    [0, 1]
    """

    inputs: Inputs
    """Texts, or features of shape (n, n_features)."""
    labels: IntArray | FloatArray
    """Classes, targets, bytes of the texts, or references, shape (n,); in 'multilabel' 0 or 1, shape (n, n_labels)."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Scores of the answers of one method to single test texts, in one task at one design point.

    Examples
    --------
    >>> import numpy as np
    >>> scores = {"extra": np.array([[1.0, 0.0]]), "test": np.array([[1.0, 1.0]])}
    >>> answers = Answers(subsamples=np.array([0]), rows=np.array([[17, 3]]), scores=scores)
    >>> float(answers.scores["test"].mean())
    1.0
    """

    subsamples: IntArray
    """Numbers of the subsamples, ascending: (n_subsamples,)."""
    rows: IntArray
    """Number of each test text: (n_subsamples, n_texts). Equal numbers are the same text."""
    scores: Mapping[str, FloatArray]
    """Score of each answer, by arm: (n_subsamples, n_texts); 1 or 0 for a class, others for grades and tables."""
    labels: IntArray | None = None
    """True class of each text, or the number of its set of labels: (n_subsamples, n_texts); None if it is unknown."""
    groups: IntArray | None = None
    """Number of the group of each text, such as its author: (n_subsamples, n_texts); None if each text is its own."""
    are_equal: BoolArray | None = None
    """Whether the predictions of all arms are equal: (n_subsamples,); None if it is unknown."""


class Predictions(Protocol):
    """Answers to the test texts of a run or of a table with rows of texts, read on demand.

    Examples
    --------
    >>> def accuracy(predictions: Predictions, task: str, method: str) -> float:
    ...     answers = predictions.answers(task, method, num_train=50, num_test=200, arms=["test"])
    ...     return float(answers.scores["test"].mean())
    """

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers | None:
        """Read the answers of all finished trials of one method in one task at one design point.

        Parameters
        ----------
        task, method, num_train, num_test
            Place in the design; None for sizes that a table does not have.
        arms
            Arms to read, such as ('extra', 'test').
        model
            Model, which distinguishes configurations of tables; the methods of a run have one each.

        Returns
        -------
        Answers or None
            Answers of the trials; None if the score of the task is not a mean over texts, such as R^2.

        Raises
        ------
        StoreError
            If predictions are missing, or are not those that were stored.
        """
        ...


FLAGS = {
    "columns": "--map", "ignore": "--ignore", "percent": "--percent",
    "independent_tasks": "--independent-tasks", "region": "--region", "tasks": "--task", "earlier": "--earlier",
}  # fmt: skip
"""Options of the command line by the argument of a function that says the same."""


class TableKeywords(TypedDict, total=False):
    """Keywords of the functions that read a user's table: those fields of `TableOptions` that users set."""

    columns: Mapping[str, str]
    ignore: Collection[str]
    percent: bool
    independent_tasks: bool
    region: float | None
    tasks: Collection[str]
    earlier: int | Sequence[int]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How to read a user's table of scores.

    Examples
    --------
    >>> TableOptions(columns={"seed": "subsample"}, ignore=["notes"]).argument.command
    '--map seed=subsample --ignore notes'
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of the user's table to columns of the results table, or to arms."""
    ignore: Collection[str] = ()
    """Columns of the user's table that say nothing about the scores."""
    percent: bool = False
    """Whether scores are percentages."""
    independent_tasks: bool = False
    """Whether different tasks have independent draws, although these have the same numbers."""
    region: float | None = None
    """Half-width of the region of practical equivalence, in the unit of the scores; None for the default."""
    tasks: Collection[str] = ()
    """Tasks to read; all if there are none."""
    earlier: int | Sequence[int] = ()
    """Subsamples per task, on average, at each earlier analysis of the table, which was extended since, ascending."""
    arms: tuple[str, ...] = ("extra", "test")
    """Arms that the table must have, because its analyses need them. If these are not extra and test, a table without
    arms has the scores of the arm base."""
    drops_empty: bool = False
    """Whether arms whose score is empty are left out."""

    @property
    def ignored(self) -> tuple[str, ...]:
        """Ignored columns; a text is one column."""
        return (self.ignore,) if isinstance(self.ignore, str) else tuple(self.ignore)

    @property
    def earlier_numbers(self) -> tuple[int, ...]:
        """Subsamples per task at each earlier analysis."""
        return (self.earlier,) if isinstance(self.earlier, int) else tuple(self.earlier)

    @property
    def needs_pairs(self) -> bool:
        """Whether trials need the arms extra and test, which are paired."""
        return not set(self.arms) <= {"base"}

    @property
    def given(self) -> dict[str, Any]:
        """What the user said, by the name of the argument of a function."""
        values: dict[str, Any] = {
            "columns": dict(self.columns), "ignore": [*self.ignored], "percent": self.percent,
            "independent_tasks": self.independent_tasks, "region": self.region, "tasks": [*self.tasks],
            "earlier": [*self.earlier_numbers],
        }  # fmt: skip
        return {name: value for name, value in values.items() if value or isinstance(value, float)}

    def combine(self, other: TableOptions) -> TableOptions:
        """Return these options with those of another source; these decide about columns that both name."""
        return TableOptions(
            {**other.columns, **self.columns},
            tuple(dict.fromkeys((*other.ignored, *self.ignored))),
            other.percent or self.percent,
            other.independent_tasks or self.independent_tasks,
            other.region if self.region is None else self.region,
            self.tasks or other.tasks,
            self.earlier or other.earlier,
            self.arms,
            self.drops_empty,
        )

    def arguments(self) -> list[str]:
        """Return the arguments of the command line that say the same."""
        arguments: list[str] = []
        for name, value in self.given.items():
            if value is True:
                arguments.append(FLAGS[name])
            elif isinstance(value, dict):
                arguments += chain.from_iterable((FLAGS[name], f"{source}={value[source]}") for source in value)
            elif isinstance(value, list):
                arguments += chain.from_iterable((FLAGS[name], str(item)) for item in value)
            else:
                arguments += [FLAGS[name], f"{value:g}"]
        return arguments

    @property
    def argument(self) -> Argument:
        """These options in messages, as users of the command line and of Python write them."""
        return Argument(
            shlex.join(self.arguments()), ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        )
