"""Finds equal and nearly equal texts, and describes the texts of a task as a design draws them.

Two texts are equal if `peekbench.identity` normalizes them to the same text, and near duplicates if the sets of the
five-character substrings of these have a Jaccard similarity of at least 0.8. MinHash with locality-sensitive hashing
(Broder, 1997; Leskovec, Rajaraman and Ullman, *Mining of Massive Datasets*, ch. 3) proposes pairs, and the exact
similarity of each pair is then checked. So no pair is reported wrongly, and a pair of similarity 0.8 is missed with
probability (1 - 0.8**6)**21 = 0.002. Prompts must also have the same reference and the same numbers, because prompts of
one template, such as 'Add 12 and 8' and 'Add 13 and 8', are different questions.

Descriptions are of the largest sets of a design, in its first subsamples.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from peekbench.data.dataset_checks import class_counts
from peekbench.data.loading import load_dataset
from peekbench.data.sampling import Sampler
from peekbench.identity import normalize
from peekbench.plugins.boundary import Foreign
from peekbench.records.data import Dataset, IntArray, Split, TokenCounts
from peekbench.records.trials import Draw, Subsample
from peekbench.spec.components import MethodSpec, TaskSpec
from peekbench.spec.experiment import ExperimentSpec

Likeness: TypeAlias = Literal["exact", "near"]

SIMILARITY = 0.8
SHINGLE_LENGTH = 5  # characters
NUMBER = re.compile(r"\d+")
NUM_BANDS, ROWS_PER_BAND = 21, 6
SEED = 1
BLOCK = 2**16  # characters whose substrings are hashed together, so that they stay in a processor's cache

MAX_SUBSAMPLES = 5
PERCENTILES = (5, 25, 50, 75, 95)
SETS = ("train", "extra", "test")


def group_duplicates(
    texts: Iterable[str], likeness: Likeness, references: Sequence[Hashable] | None = None
) -> IntArray:
    """Group duplicate texts.

    Parameters
    ----------
    texts
        Any number of texts.
    likeness
        'exact' for texts that are equal after normalization, 'near' for a Jaccard similarity of at least 0.8. Near
        duplicates of near duplicates belong to one group.
    references
        In generation, the reference of each prompt, or its number; near duplicates have the same reference and numbers.

    Returns
    -------
    numpy.ndarray
        For each text the position of the first text of its group, shape (n,).

    Examples
    --------
    >>> group_duplicates(["Good day", "good  day", "Bye", "Good day"], "exact").tolist()
    [0, 0, 2, 0]
    >>> group_duplicates(["The whole text, word by word", "Bye", "the whole text, word by words"], "near").tolist()
    [0, 1, 0]
    >>> group_duplicates(["Add 12 and 8, please.", "Add 12 and 9, please."], "near", ["20", "21"]).tolist()
    [0, 1]
    """
    normalized = list(map(normalize, texts))
    first = _group_equal(normalized)
    if likeness == "exact":
        return first
    distinct = [position for position, earliest in enumerate(first.tolist()) if position == earliest]
    keys: Sequence[Hashable] = [()] * len(distinct)
    if references is not None:
        keys = [(references[position], *NUMBER.findall(normalized[position])) for position in distinct]
    for later, earlier in _near_pairs([normalized[position] for position in distinct], keys):
        root, other_root = sorted((_find_root(first, distinct[later]), _find_root(first, distinct[earlier])))
        first[other_root] = root
    for position in range(len(first)):  # a root precedes all other members of its group
        first[position] = first[first[position]]
    return first


def _group_equal(texts: Iterable[Hashable]) -> IntArray:
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(text, position) for position, text in enumerate(texts)), dtype=np.int64)


# A union-find of four lines, because that of SciPy (`DisjointSet`) would make the core require SciPy.
def _find_root(first: IntArray, position: int) -> int:
    while first[position] != position:
        position = int(first[position])
    return position


def _near_pairs(texts: Sequence[str], keys: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    """Yield pairs (later, earlier) of positions of texts with equal keys."""
    buckets: dict[tuple[int, bytes, Hashable], list[int]] = {}
    for position, (text, signature) in enumerate(zip(texts, _signatures(texts), strict=True)):
        content, size = signature.tobytes(), signature.nbytes // NUM_BANDS
        starts = range(0, len(content), size)
        bands = [buckets.setdefault((n, content[n : n + size], keys[position]), []) for n in starts]
        if candidates := sorted({other for bucket in bands for other in bucket}):
            own = _shingles(text)
            for other in candidates:
                shingles = _shingles(texts[other])
                if len(own & shingles) / len(own | shingles) >= SIMILARITY:  # Jaccard similarity
                    yield position, other
        for bucket in bands:
            bucket.append(position)


def _signatures(texts: Sequence[str]) -> Iterator[NDArray[np.uint64]]:
    """Yield the smallest hash of the substrings of each text under each of many hash functions, block by block."""
    multipliers, offsets, weights = np.random.default_rng(SEED).integers(
        2**64, size=(3, NUM_BANDS * ROWS_PER_BAND), dtype=np.uint64
    )
    multipliers |= 1
    start = 0
    while start < len(texts):
        stop, num_codes = start, 0
        while stop < len(texts) and (stop == start or num_codes < BLOCK):
            num_codes += max(SHINGLE_LENGTH, len(texts[stop]))
            stop += 1
        padded = "".join(text.ljust(SHINGLE_LENGTH, "\0") for text in texts[start:stop])
        codes = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        hashes = np.lib.stride_tricks.sliding_window_view(codes, SHINGLE_LENGTH) @ weights[:SHINGLE_LENGTH]
        sizes = np.array([max(SHINGLE_LENGTH, len(text)) for text in texts[start:stop]])
        ends = np.cumsum(sizes)
        is_inside = np.ones(len(codes), dtype=bool)
        for distance in range(1, SHINGLE_LENGTH):  # substrings that would reach into the next text
            is_inside[ends - distance] = False
        hashes = hashes[is_inside[: len(hashes)]]
        firsts = ends - sizes - (SHINGLE_LENGTH - 1) * np.arange(len(sizes))
        signatures = np.empty((len(multipliers), len(sizes)), dtype=np.uint64)
        for number, (multiplier, offset) in enumerate(zip(multipliers, offsets, strict=True)):
            signatures[number] = np.minimum.reduceat((multiplier * hashes + offset) >> 32, firsts)
        yield from np.ascontiguousarray(signatures.T)
        start = stop


def _shingles(normalized: str) -> set[str]:
    """Return all substrings of five characters."""
    return {normalized[start : start + SHINGLE_LENGTH] for start in range(max(1, len(normalized) - SHINGLE_LENGTH + 1))}


def keep_first(groups: IntArray, labels: IntArray) -> NDArray[np.bool_]:
    """Select rows such that no two are duplicates.

    Parameters
    ----------
    groups
        Result of `group_duplicates`, shape (n,).
    labels
        Labels of the rows, shape (n,).

    Returns
    -------
    numpy.ndarray
        Booleans of shape (n,): true for the first row of each group, unless the labels of the group differ.

    Examples
    --------
    >>> keep_first(np.array([0, 0, 2, 2, 4]), np.array([1, 1, 0, 1, 0])).tolist()
    [True, False, False, False, True]
    """
    agrees = np.ones(len(groups), dtype=bool)
    np.logical_and.at(agrees, groups, labels == labels[groups])
    is_kept: NDArray[np.bool_] = (groups == np.arange(len(groups))) & agrees
    return is_kept


def describe_texts(spec: ExperimentSpec, task: TaskSpec) -> dict[str, Any]:
    """Describe a task's texts; return an empty dict for tasks without texts.

    Returns
    -------
    dict
        `num_train`, `num_test`, `num_extra`, `num_subsamples`, `num_texts`: sizes of the described sets. Unlabeled
        texts that all fits share count as extra texts.
        `train`: `Design.train`; 'natural' for tasks without classes.
        `rows`: number of rows of the whole dataset.
        `classes`: rows of each class in the whole dataset, by name.
        `splits`: the same for each official split; empty if there are none.
        `characters`: percentiles of the texts' lengths, by percentile.
        `tokens`: for each method that counts tokens, percentiles, `limit`, and `cut`, the share of truncated texts.
    """
    dataset = load_dataset(spec.source(task))
    if not isinstance(dataset.inputs, Sequence):
        return {}
    design = spec.design_of(task)
    train = design.train
    if dataset.kind == "multilabel":  # such train sets are never balanced
        train = "natural"
    num_train, num_test = max(design.num_train), max(design.num_test)
    sampler = Sampler(dataset, design, spec.seed, task.name)
    numbers = range(min(MAX_SUBSAMPLES, design.repeats(num_test)))
    subsamples = [_rows_by_set(sampler.draw(Draw(task.name, num_train, num_test, number))) for number in numbers]
    rows = np.unique(np.concatenate([of_set for subsample in subsamples for of_set in subsample.values()]))
    num_rows = len(dataset.inputs)
    texts = [dataset.inputs[row] if row < num_rows else dataset.extra[row - num_rows] for row in rows.tolist()]
    return {
        "num_train": num_train,
        "num_test": len(subsamples[0]["test"]),
        "num_extra": len(subsamples[0]["extra"]),
        "num_subsamples": len(subsamples),
        "num_texts": len(texts),
        "train": train,
        "rows": num_rows,
        "classes": _count_classes(dataset),
        "splits": {split: _count_classes(dataset, split) for split in dict.fromkeys(dataset.splits)},
        "characters": _percentiles([len(text) for text in texts]),
        "tokens": {
            method.name: _describe_tokens(spec, method, task, texts)
            for method in spec.methods
            if method.entry.preparation.count_tokens
        },
    }


def _count_classes(dataset: Dataset, split: Split | None = None) -> dict[str, int]:
    counts = class_counts(dataset, split)
    return {name: counts.get(label, 0) for label, name in enumerate(dataset.class_names)}


def is_described(spec: ExperimentSpec, description: Mapping[str, Any] | None) -> bool:
    """Return whether an earlier description has everything that this spec needs."""
    if description is None:
        return False
    counting_methods = {method.name for method in spec.methods if method.entry.preparation.count_tokens}
    return not description or counting_methods <= set(description["tokens"])


def _percentiles(lengths: Sequence[int]) -> dict[str, int]:
    return {str(share): round(float(np.percentile(lengths, share))) for share in PERCENTILES}


def _describe_tokens(spec: ExperimentSpec, method: MethodSpec, task: TaskSpec, texts: Sequence[str]) -> dict[str, Any]:
    count_tokens = method.entry.preparation.count_tokens
    assert count_tokens is not None
    caller, options = Foreign(f"method {method.name}: `count_tokens`", method.use), spec.options(method, task.name)
    lengths: TokenCounts = caller.call(
        count_tokens, {"texts": texts}, TokenCounts, options=options, folders=spec.folders()
    )
    cut = None
    if lengths.limit is not None:
        cut = sum(count > lengths.limit for count in lengths.counts) / len(texts)
    return {**_percentiles(lengths.counts), "limit": lengths.limit, "cut": cut}


def _rows_by_set(subsample: Subsample) -> dict[str, IntArray]:
    """Return the rows of each set; a test text contaminates both arms from the shared texts as from the extra texts.

    With folds, the first fold stands for those that a fit does not adapt to.
    """
    if subsample.folds:
        fold = slice(*subsample.folds[0])
        others = np.concatenate([np.delete(subsample.test, fold), *(rows[fold] for rows in subsample.sets[1:])])
        return dict(zip(SETS, (subsample.train, others, subsample.test[fold]), strict=True))
    extra = np.concatenate([subsample.extra, subsample.shared])
    return dict(zip(SETS, (subsample.train, extra, subsample.test), strict=True))
