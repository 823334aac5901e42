"""The audit `ngram`: which texts of a task occur in corpora, in its train split, or twice in the task.

Analyses of large language models call a text contaminated if it shares any n-gram of 13 words with the training data
(Brown et al. 2020, https://arxiv.org/abs/2005.14165, appendix C), or 70% of its n-grams of 8 words (Chowdhery et al.
2022, https://arxiv.org/abs/2204.02311, section 8).
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial

from scipy.stats import false_discovery_control

from peekbench import Analysis, Column, Context, Dataset, Table
from peekbench.records import Cell
from peekbench_exposure.findings import EXPOSED, NO_EXPOSURE, SHIFT_LEVEL, decide, inconclusive
from peekbench_exposure.texts import all_texts, choose_texts
from peekbench_overlap import Ngram
from peekbench_overlap.corpus import find_files, name_place, read_pieces
from peekbench_overlap.index import NgramIndex, Places, Search, split_texts
from peekbench_overlap.judge import NUM_EXAMPLES, Found, Result, TaskNgrams, judge

TRAIN_SPLIT = "train split"


def ngram(tasks: Mapping[str, Dataset], *, options: Ngram, context: Context) -> Analysis:
    """Search corpora, the train split and the other rows of each task for its texts.

    Parameters
    ----------
    tasks
        Datasets by task name.
    options
        Corpora, n-grams and thresholds.
    context
        Seed and folders.

    Raises
    ------
    DataError
        If a task has no texts, or a corpus cannot be read.
    SpecError
        If there is no task as named in `unseen`.
    """
    files = {str(corpus): find_files(corpus, context.folders.spec) for corpus in options.corpora}
    tested = {name: _test_rows(name, dataset) for name, dataset in tasks.items()}
    max_texts = max(len(dataset.inputs) for dataset in tested.values())
    chosen = choose_texts(tested, options.unseen, None, max_texts, context.seed)
    words = {name: [split_texts([text]) for text in texts.pooled] for name, texts in chosen.items()}
    index = NgramIndex([text for of_task in words.values() for text in of_task], options.n)
    corpora = {}
    for corpus, paths in files.items():
        search = Search(index)
        for path in paths:
            search.add(read_pieces(path, options), partial(name_place, path))
        corpora[corpus] = search.places()
    results, start = {}, 0
    for name, texts in chosen.items():
        end = start + len(texts.pooled)
        keys = {n: index.keys[n][start:end] for n in options.n}
        splits = _search_train_split(tasks[name], index)
        results[name] = judge(TaskNgrams(texts, words[name], keys, index), corpora | splits, options, context.seed)
        start = end
    return report(results, options)


def _search_train_split(dataset: Dataset, index: NgramIndex) -> dict[str, Places]:
    """Return what the train split contains, if the task has official splits."""
    if not dataset.splits:
        return {}
    search = Search(index)
    train = (row for row, split in enumerate(dataset.splits) if split == "train")
    search.add(((row + 1, str(dataset.inputs[row])) for row in train), "row {}".format)
    return {TRAIN_SPLIT: search.places()}


def _test_rows(name: str, dataset: Dataset) -> Dataset:
    """Return the rows that test sets are drawn from: those of the test split, or all."""
    texts = all_texts(name, dataset)
    if dataset.splits:
        texts = [text for text, split in zip(texts, dataset.splits, strict=True) if split == "test"]
    return Dataset(texts, [0] * len(texts))


MIN_TEXTS = 10  # with n-grams of their own
MAX_QUOTED = 160  # characters of an example
FEW_FOUND = inconclusive("few texts found")
TOO_FEW = inconclusive(f"fewer than {MIN_TEXTS} texts have n-grams of their own")
TOO_FEW_UNSEEN = inconclusive(f"fewer than {MIN_TEXTS} unseen texts have n-grams of their own")


def report(results: Mapping[str, Result], options: Ngram) -> Analysis:
    """Return one analysis of all tasks.

    Parameters
    ----------
    results
        Results by task name.
    options
        The audit's options.
    """
    found = [(name, of_corpus) for name, result in results.items() for of_corpus in result.found]
    tables: list[Table] = []
    if found:
        adjusted = map(float, false_discovery_control([of_corpus.p for _, of_corpus in found]))
        rows = [
            _finding_cells(name, of_corpus, p, results[name], options)
            for (name, of_corpus), p in zip(found, adjusted, strict=True)
        ]
        tables += [_finding_table(rows, options), _amount_table(found)]
    tables.append(_repetition_table(results, options))
    if any(result.shift for result in results.values()):
        tables.append(_shift_table(results))
    if any(of_corpus.examples for _, of_corpus in found):
        tables.append(_example_table(results))
    return Analysis("overlap", tuple(tables), warnings=_warnings(results, options))


def _finding_cells(name: str, found: Found, p: float, result: Result, options: Ngram) -> tuple[Cell, ...]:
    if found.num_examined < MIN_TEXTS:
        finding = TOO_FEW
    elif options.unseen and found.num_unseen < MIN_TEXTS:
        finding = TOO_FEW_UNSEEN
    elif options.unseen:
        finding = decide(p, result.shift, 1 - options.level)
    elif p <= 1 - options.level:
        finding = EXPOSED
    else:
        finding = FEW_FOUND if found.num_found else NO_EXPOSURE
    share = found.num_found / found.num_examined if found.num_examined else None
    return (name, found.corpus, found.n, share, found.expected, p, finding)


def _finding_table(rows: Sequence[tuple[Cell, ...]], options: Ngram) -> Table:
    columns = (
        Column("task"),
        Column("corpus"),
        Column("n", "count"),
        Column("texts found", "fraction"),
        Column("expected", "fraction"),
        Column("p, adjusted", "p_value"),
        Column("finding"),
    )
    expected = (
        f"the share of the texts of {options.unseen} that are found, which cannot be in the corpora. p: Fisher's exact "
        "test, one-sided"
        if options.unseen
        else f"the share of texts that a corpus without the task may contain, {options.clean_share:.0%} or the share "
        "of texts that other rows of the task contain, whichever is larger. p: binomial test, one-sided"
    )
    note = (
        f"Texts found: share of texts with at least {options.min_share:.0%} of their n-grams of n words in the corpus. "
        "N-grams that several texts of the task share are templates or set phrases and do not count. Expected: "
        f"{expected}, adjusted for the number of rows of this table (Benjamini and Hochberg). Exposed: the corpus "
        "contains more of the task's texts than expected."
    )
    return Table("Which texts do the corpora contain?", columns, tuple(rows), note)


def _amount_table(found: Sequence[tuple[str, Found]]) -> Table:
    columns = (
        Column("task"),
        Column("corpus"),
        Column("n", "count"),
        Column("texts", "count"),
        Column("with a hit", "fraction"),
        Column("n-grams found", "fraction"),
    )
    rows = tuple(
        (
            name,
            of_corpus.corpus,
            of_corpus.n,
            of_corpus.num_examined,
            of_corpus.share_with_hit,
            of_corpus.share_of_ngrams,
        )
        for name, of_corpus in found
    )
    note = (
        "Texts: those with n-grams of their own, which no other text of the task contains. With a hit: share of these "
        "texts with at least one of them in the corpus. N-grams found: share of all these n-grams."
    )
    return Table("How much of the texts do the corpora contain?", columns, rows, note)


def _repetition_table(results: Mapping[str, Result], options: Ngram) -> Table:
    columns = (
        Column("task"),
        Column("n", "count"),
        Column("texts", "count"),
        Column("shorter than n", "fraction"),
        Column("only shared n-grams", "fraction"),
        Column("found in other rows", "fraction"),
    )
    rows = tuple(
        (
            name,
            repetition.n,
            repetition.num_texts,
            repetition.num_short / max(1, repetition.num_texts),
            repetition.num_shared / max(1, repetition.num_texts),
            repetition.share_repeated,
        )
        for name, result in results.items()
        for repetition in result.repetition
    )
    note = (
        "Texts shorter than n words, and texts whose n-grams all occur in other texts of the task or of the unseen "
        "texts, cannot be searched for. Found in other rows: share of texts with at least "
        f"{options.min_share:.0%} of their n-grams in other rows of the task, from which train, extra and test texts "
        "are drawn (with official splits, in other rows of the test split)."
    )
    return Table("How far do the texts of a task repeat each other?", columns, rows, note)


def _shift_table(results: Mapping[str, Result]) -> Table:
    respects = list(dict.fromkeys(respect for result in results.values() for respect in result.shift))
    rows = tuple((name, *(result.shift.get(respect) for respect in respects)) for name, result in results.items())
    note = (
        "A small p-value means that the texts and the unseen texts differ in their words, their style (sequences of "
        "three characters) or their length, so that a corpus may contain more of one group for another reason. If the "
        f"smallest p-value times the number of tests is at most {SHIFT_LEVEL:.1f}, the finding is inconclusive."
    )
    columns = (Column("task"), *(Column(f"p, {respect}", "p_value") for respect in respects))
    return Table("Are the texts and the unseen texts comparable?", columns, rows, note)


def _example_table(results: Mapping[str, Result]) -> Table:
    columns = (
        Column("task"),
        Column("text"),
        Column("n", "count"),
        Column("n-grams found", "fraction"),
        Column("place"),
    )
    shortest: dict[tuple[str, str], Found] = {}
    for name, result in results.items():
        for of_corpus in result.found:
            shortest.setdefault((name, of_corpus.corpus), of_corpus)
    rows = tuple(
        (
            name,
            textwrap.shorten(example.text, MAX_QUOTED, placeholder=" ..."),
            of_corpus.n,
            example.share,
            example.place,
        )
        for (name, _), of_corpus in shortest.items()
        for example in of_corpus.examples
    )
    note = f"Up to {NUM_EXAMPLES} texts per task and corpus, those with the largest share of n-grams in the corpus."
    return Table("Texts that the corpora contain", columns, rows, note)


def _warnings(results: Mapping[str, Result], options: Ngram) -> tuple[str, ...]:
    warnings = []
    if common := {name: result.texts.num_common for name, result in results.items() if result.texts.num_common}:
        listed = ", ".join(f"{name} ({number})" for name, number in common.items())
        warnings.append(f"Some texts are also among the unseen texts and were left out: {listed}.")
    for n in options.n:
        short = [
            name
            for name, result in results.items()
            for repetition in result.repetition
            if repetition.n == n and repetition.num_short > repetition.num_texts / 2
        ]
        if short:
            warnings.append(
                f"More than half of the texts of {', '.join(short)} have fewer than {n} words and were not searched "
                f"for by {n}-grams."
            )
    return tuple(warnings)
