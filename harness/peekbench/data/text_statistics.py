"""Describes the texts of a task as a design draws them: their lengths, and duplicates between train, extra and test.

A text in both the extra and the test set contaminates both arms, so duplicates hide the bias that peekbench measures.
The statistics are for the largest sets of a design, averaged over its first subsamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement, islice
from typing import Any, get_args

import numpy as np

from peekbench.data.duplicates import Likeness, group_duplicates
from peekbench.data.loading import class_counts, load_dataset
from peekbench.data.sampling import Sampler
from peekbench.records.data import Dataset, IntArray, Split
from peekbench.records.trials import Draw, Subsample
from peekbench.spec.components import MethodSpec, TaskSpec
from peekbench.spec.experiment import ExperimentSpec

MAX_SUBSAMPLES = 5
MAX_EXAMPLES = 5  # of texts that occur in several rows
PERCENTILES = (5, 25, 50, 75, 95)
SETS = ("train", "extra", "test")


def describe_texts(spec: ExperimentSpec, task: TaskSpec) -> dict[str, Any]:
    """Describe a task's texts; return an empty dict for tasks without texts.

    Returns
    -------
    dict
        `num_train`, `num_test`, `num_extra`, `num_subsamples`, `num_texts`: sizes of the described sets. Unlabeled
        texts that all fits share count as extra texts.
        `train`: `Design.train`.
        `classes`: rows of each class in the whole dataset, by name.
        `splits`: the same for each official split; empty if there are none.
        `repeated`: the texts that occur in several rows of the whole dataset: `texts`, their number; `rows`, their
        rows; `conflicting`, those with different labels; `examples`, the first two rows of the first texts, counted
        from 0.
        `characters`: percentiles of the texts' lengths, by percentile.
        `tokens`: for each method that counts tokens, percentiles, `limit`, and `cut`, the share of truncated texts.
        `overlap`: by 'exact' and 'near' (see `peekbench.data.duplicates`) and by a pair of sets such as 'test-extra',
        the share of texts of the first set with a duplicate in the second; 'test-test' is within one set.
    """
    dataset = load_dataset(spec.source(task))
    if not isinstance(dataset.inputs, Sequence):
        return {}
    design = spec.design_of(task)
    num_train, num_test = max(design.num_train), max(design.num_test)
    sampler = Sampler(dataset, design, spec.seed, task.name)
    numbers = range(min(MAX_SUBSAMPLES, design.repeats(num_test)))
    subsamples = [_rows_by_set(sampler.draw(Draw(task.name, num_train, num_test, number))) for number in numbers]
    rows = np.unique(np.concatenate([of_set for subsample in subsamples for of_set in subsample.values()]))
    texts = [dataset.inputs[row] for row in rows.tolist()]
    return {
        "num_train": num_train,
        "num_test": num_test,
        "num_extra": len(subsamples[0]["extra"]),
        "num_subsamples": len(subsamples),
        "num_texts": len(texts),
        "train": design.train,
        "classes": _count_classes(dataset),
        "splits": {split: _count_classes(dataset, split) for split in dict.fromkeys(dataset.splits)},
        "repeated": find_repeated(dataset),
        "characters": _percentiles([len(text) for text in texts]),
        "tokens": {
            method.name: _describe_tokens(spec, method, task, texts)
            for method in spec.methods
            if method.entry.preparation.count_tokens
        },
        "overlap": {
            likeness: _measure_overlap(subsamples, rows, group_duplicates(texts, likeness))
            for likeness in get_args(Likeness)
        },
    }


def _count_classes(dataset: Dataset, split: Split | None = None) -> dict[str, int]:
    counts = class_counts(dataset, split)
    return {name: counts.get(label, 0) for label, name in enumerate(dataset.class_names)}


def find_repeated(dataset: Dataset) -> dict[str, Any]:
    """Count the texts that occur in several rows of a dataset.

    Parameters
    ----------
    dataset
        Dataset whose inputs are texts.

    Returns
    -------
    dict
        The entry `repeated` of `describe_texts`.

    Examples
    --------
    >>> texts = ["good", "bad", "good", "fine", "bad", "good"]
    >>> find_repeated(Dataset(texts, np.array([0, 1, 1, 0, 1, 0]), ("up", "down")))
    {'texts': 2, 'rows': 5, 'conflicting': 1, 'examples': [[0, 2], [1, 4]]}
    """
    first = group_duplicates(dataset.inputs, "exact")
    later = np.flatnonzero(first != np.arange(len(first)))
    roots, seconds = np.unique(first[later], return_index=True)
    labels = np.asarray(dataset.labels)
    conflicting = np.unique(first[later][labels[later] != labels[first[later]]])
    examples = zip(roots.tolist(), later[seconds].tolist(), strict=True)
    return {
        "texts": len(roots),
        "rows": len(roots) + len(later),
        "conflicting": len(conflicting),
        "examples": [list(pair) for pair in islice(examples, MAX_EXAMPLES)],
    }


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
    lengths = count_tokens(texts, options=spec.options(method, task.name), folders=spec.folders())
    limit = lengths.limit
    cut = None if limit is None else sum(count > limit for count in lengths.counts) / len(texts)
    return {**_percentiles(lengths.counts), "limit": limit, "cut": cut}


def _rows_by_set(subsample: Subsample) -> dict[str, IntArray]:
    """Return the rows of each set; a test text contaminates both arms from the shared texts as from the extra texts."""
    extra = np.concatenate([subsample.extra, subsample.shared])
    return dict(zip(SETS, (subsample.train, extra, subsample.test), strict=True))


def _measure_overlap(
    subsamples: Sequence[Mapping[str, IntArray]], rows: IntArray, groups: IntArray
) -> dict[str, float]:
    """Return the share of duplicates by pair of sets, averaged over subsamples."""
    shares: dict[str, float] = {}
    for second, first in combinations_with_replacement(SETS, 2):
        share_by_subsample = []
        for subsample in subsamples:
            own, others = (groups[np.searchsorted(rows, subsample[name])] for name in (first, second))
            if first == second:
                _, positions, counts = np.unique(own, return_inverse=True, return_counts=True)
                share_by_subsample.append(float(np.mean(counts[positions] > 1)))
            else:
                share_by_subsample.append(float(np.mean(np.isin(own, others))))
        shares[f"{first}-{second}"] = float(np.mean(share_by_subsample))
    return shares
