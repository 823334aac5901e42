"""A plugin for tests, found as every installed plugin is: quick made-up tasks, and methods that fail in every way."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from peekbench import (
    Analysis,
    AnalyzerEntry,
    AuditEntry,
    Column,
    Context,
    Dataset,
    DataSourceEntry,
    Folders,
    Inputs,
    Labeled,
    MethodEntry,
    Options,
    Predictor,
    Table,
    Task,
    TaskGroupEntry,
    TokenCounts,
    hookimpl,
)

if TYPE_CHECKING:
    import pandas as pd

    from peekbench import FloatArray


class Words(Options):
    num_rows: int = 400
    num_classes: int = 3
    seed: int = 0
    noise: float = 0.6  # share of words that say nothing of the class


def words(*, options: Words, folders: Folders) -> Dataset:
    """Texts of eight words, some of which belong to the text's class alone."""
    rng = random.Random(options.seed)
    labels = [row % options.num_classes for row in range(options.num_rows)]
    texts = [
        " ".join(
            f"noise{rng.randrange(200)}" if rng.random() < options.noise else f"class{label}word{rng.randrange(30)}"
            for _ in range(8)
        )
        + f" row{row}"
        for row, label in enumerate(labels)
    ]
    names = tuple(f"class {label}" for label in range(options.num_classes))
    return Dataset(texts, labels, names, instruction="The text is made up. Answer with its class.")


class Numbers(Options):
    num_rows: int = 300


def numbers(*, options: Numbers, folders: Folders) -> Dataset:
    """A linear regression task."""
    import numpy as np

    rng = np.random.default_rng(0)
    features = rng.normal(size=(options.num_rows, 3))
    targets = features @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=options.num_rows)
    return Dataset(features, targets, kind="regression")


class Constant(Options):
    pass


def constant(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Constant, context: Context) -> Predictor:
    """Share of each class in train, whatever the text."""
    import numpy as np

    shares = np.bincount(train.labels.astype(int), minlength=task.num_classes) / len(train.labels)
    return Predictor(lambda inputs: np.tile(shares, (len(inputs), 1)))


def look(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Options, context: Context) -> Predictor:
    """As constant; tells how many threads the thread pools have."""
    import scipy.linalg  # noqa: F401 - comes with a pool of its own
    from threadpoolctl import threadpool_info

    predictor = constant(unlabeled, train, task, options=Constant(), context=context)
    pools = [pool["num_threads"] for pool in threadpool_info()]
    return Predictor(predictor.predict, {"pools": len(pools), "threads": max(pools)})


class Family(Options):
    orphan: int = 0  # seconds that a process is to sleep which is left behind


def family(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Family, context: Context) -> Predictor:
    """As constant; starts processes of its own, forked ones, which hold on to every open file."""
    import subprocess
    from multiprocessing import get_context

    with get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    if options.orphan:
        subprocess.Popen(["sleep", str(options.orphan)])
        get_context("fork").Process(target=time.sleep, args=(options.orphan,)).start()
        os.kill(os.getpid(), signal.SIGKILL)
    return constant(unlabeled, train, task, options=Constant(), context=context)


class Short(Options):
    revision: int = 0  # of what would be downloaded; 0 is the newest


def short(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Short, context: Context) -> Predictor:
    """As constant; tells which revision it works with."""
    predictor = constant(unlabeled, train, task, options=Constant(), context=context)
    return Predictor(predictor.predict, {"revision": float(options.revision)})


def count_words(texts: Sequence[str], *, options: Short, folders: Folders) -> TokenCounts:
    return TokenCounts([len(text.split()) for text in texts], limit=10)


def pin_short(*, options: Short, folders: Folders) -> dict[str, int]:
    """The newest revision is what the file `newest` says, or else 7; it is looked up once and kept."""
    kept = folders.cache / "toy-revision"
    if not kept.exists():
        newest = folders.spec / "newest"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(newest.read_text() if newest.exists() else "7")
    return {"revision": options.revision or int(kept.read_text())}


def prefetch_short(*, options: Short, folders: Folders) -> dict[str, int | None]:
    folders.cache.mkdir(parents=True, exist_ok=True)
    (folders.cache / "toy-model").write_text(f"revision {options.revision}")
    return {"toy model": options.revision}


class Vote(Options):
    boldness: float = 1.0  # has no effect without unlabeled texts
    trust: float = 1.0  # in words of train
    model: str = "none"


def vote(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Vote, context: Context) -> Predictor:
    """Votes of the words seen in train; words of the unlabeled texts weigh more, a peek of a kind."""
    import numpy as np

    weights: dict[str, FloatArray] = {}
    for text, label in zip(train.inputs, train.labels.tolist(), strict=True):
        for word in text.split():
            weights.setdefault(word, np.zeros(task.num_classes))[label] += 1
    seen = Counter(word for text in (() if unlabeled is None else unlabeled) for word in text.split())

    def predict(inputs: Inputs) -> FloatArray:
        scores: FloatArray = np.full((len(inputs), task.num_classes), 0.5)
        for row, text in enumerate(inputs):
            for word in text.split():
                if word in weights:
                    scores[row] += options.trust * weights[word] * (1 + options.boldness * (word in seen))
        scores /= scores.sum(axis=1, keepdims=True)
        return scores

    return Predictor(predict, {"words": float(len(weights)), "seed": float(context.seed)})


class Faulty(Options):
    fault: Literal["raise", "exit", "surrogate", "nan", "shape", "sum", "type", "kill", "sleep", "none"] = "raise"
    share: float = 1.0  # of the trials, chosen by the fit's seed
    marker: str = ""  # a file that exists once the fault has happened: then all goes well
    seconds: float = 0.0


def faulty(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Faulty, context: Context) -> Predictor:
    """Goes wrong as asked."""
    import numpy as np

    fair = np.full(task.num_classes, 1 / task.num_classes)
    draw = int(hashlib.sha256(str(context.seed).encode()).hexdigest()[:8], 16) / 2**32
    happened = bool(options.marker) and Path(options.marker).exists()
    row = fair
    time.sleep(options.seconds)
    if draw < options.share and not happened:
        if options.marker:
            Path(options.marker).touch()
        if options.fault == "raise":
            raise RuntimeError("this method is broken")
        if options.fault == "exit":
            raise SystemExit(0)
        if options.fault == "surrogate":
            raise ValueError("bad text \ud83d")
        if options.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if options.fault == "type":
            return "no predictor"  # type: ignore[return-value]
        if options.fault == "shape":
            row = fair[:-1]
        if options.fault == "nan":
            row = fair * np.nan
        if options.fault == "sum":
            row = fair * 2
    return Predictor(lambda inputs: np.tile(row, (len(inputs), 1)))


class Reckless(Options):
    pass


def reckless(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Reckless, context: Context) -> Predictor:
    """Guesses, and draws from the global generators, against the rules."""
    import numpy as np

    row = np.random.dirichlet(np.ones(task.num_classes)) * random.random()
    row[0] += 1 - row.sum()
    return Predictor(lambda inputs: np.tile(row, (len(inputs), 1)))


class Mean(Options):
    pass


def mean(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Mean, context: Context) -> Predictor:
    """Least squares on features."""
    import numpy as np

    weights, *_ = np.linalg.lstsq(np.asarray(train.inputs), train.labels, rcond=None)
    return Predictor(lambda inputs: np.asarray(inputs) @ weights)


class Count(Options):
    heading: str = "rows"


def count(results: pd.DataFrame, *, options: Count) -> Analysis:
    """How many rows the results table has."""
    return Analysis("count", (Table("Rows", (Column(options.heading, "count"),), ((len(results),),)),))


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:
    return [
        DataSourceEntry(name="words", options=Words, load=words, summary="made-up texts"),
        DataSourceEntry(name="numbers", options=Numbers, load=numbers, summary="a made-up regression"),
        TaskGroupEntry(name="all", members=("words",), summary="all texts"),
    ]


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    return [
        MethodEntry(name="constant", options=Constant, method=constant, summary="class shares of train"),
        MethodEntry(
            name="vote", options=Vote, method=vote, summary="votes of words", unlabeled_options=frozenset({"boldness"})
        ),
        MethodEntry(name="family", options=Family, method=family, summary="starts processes"),
        MethodEntry(name="look", method=look, summary="tells what it finds"),
        MethodEntry(
            name="short",
            options=Short,
            method=short,
            summary="sees ten words",
            count_tokens=count_words,
            pin=pin_short,
            prefetch=prefetch_short,
        ),
        MethodEntry(name="reckless", options=Reckless, method=reckless, summary="guesses, against the rules"),
        MethodEntry(name="faulty", options=Faulty, method=faulty, summary="goes wrong as asked"),
        MethodEntry(
            name="mean", options=Mean, method=mean, summary="least squares", task_kinds=frozenset({"regression"})
        ),
    ]


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    return [AnalyzerEntry(name="count", options=Count, analyze=count, summary="counts rows")]


class Sizes(Options):
    revision: int = 0  # of what would be downloaded; 0 is the newest
    fail: bool = False


def sizes(tasks: Mapping[str, Dataset], *, options: Sizes, context: Context) -> Analysis:
    """Rows of each task, the first words of its first row, and the circumstances."""
    if options.fail:
        raise RuntimeError("no sizes today")
    rows = [(name, len(dataset.labels), dataset.inputs[0].split()[0]) for name, dataset in tasks.items()]
    columns = (Column("task"), Column("rows", "count"), Column("begins"))
    note = f"seed {context.seed}, revision {options.revision}"
    return Analysis("sizes", (Table("Sizes of tasks", columns, tuple(rows), note),))


def nothing_found(tasks: Mapping[str, Dataset], *, options: Options, context: Context) -> str:
    return "all is well"


def pin_sizes(*, options: Sizes, folders: Folders) -> dict[str, int]:
    return {"revision": options.revision or 7}


def prefetch_sizes(*, options: Sizes, folders: Folders) -> dict[str, int]:
    return {"ruler": options.revision}


@hookimpl
def peekbench_audits() -> list[AuditEntry]:
    return [
        AuditEntry(
            name="sizes", options=Sizes, audit=sizes, summary="counts rows", pin=pin_sizes, prefetch=prefetch_sizes
        ),
        AuditEntry(name="speech", audit=nothing_found, summary="returns no analysis"),  # type: ignore[arg-type]
    ]
