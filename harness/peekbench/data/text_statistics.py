"""Describes a task's texts as a design draws them: how long they are, and which stand in two sets at once.

A text that stands in the extra and in the test set is peeked at in both, so duplicates hide the very bias that is
measured. What is said here is said of the largest sets of a design, averaged over its first subsamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, get_args

from peekbench.data.duplicates import Likeness, group_duplicates
from peekbench.data.loading import class_counts, load_dataset
from peekbench.data.sampling import Sampler
from peekbench.records.trials import Draw

if TYPE_CHECKING:
    from peekbench.records.data import IntArray
    from peekbench.records.trials import Subsample
    from peekbench.spec.components import MethodSpec, TaskSpec
    from peekbench.spec.experiment import ExperimentSpec

NUM_SUBSAMPLES = 5
PERCENTILES = (5, 25, 50, 75, 95)
SETS = ("train", "extra", "test")


def describe_texts(spec: ExperimentSpec, task: TaskSpec) -> dict[str, Any]:
    """What a reader should know of a task's texts; empty for tasks without texts.

    Returns
    -------
    dict
        `num_train`, `num_test`, `num_subsamples`, `num_texts`: what was looked at.
        `classes`: rows of each class in the whole data set, by name.
        `characters`: length percentiles, by percentile.
        `tokens`: for each method that counts them, percentiles, `limit`, and `cut`, the share of texts over the limit.
        `overlap`: 'exact' and 'near' (see `peekbench.duplicates`) to pairs of sets such as 'test-extra' to the share of
        the first set's texts that have a duplicate in the second; 'test-test' is within one set.
    """
    import numpy as np

    dataset = load_dataset(spec.source(task))
    if dataset.kind != "classification" or not isinstance(dataset.inputs, Sequence):
        return {}
    design = spec.design_of(task)
    num_train, num_test = max(design.num_train), max(design.num_test)
    sampler = Sampler(dataset, design, spec.seed, task.name)
    numbers = range(min(NUM_SUBSAMPLES, design.repeats(num_test)))
    subsamples = [sampler.draw(Draw(task.name, num_train, num_test, number)) for number in numbers]
    rows = np.unique(np.concatenate([getattr(subsample, name) for subsample in subsamples for name in SETS]))
    texts = [dataset.inputs[row] for row in rows.tolist()]
    counts = class_counts(dataset)
    return {
        "num_train": num_train,
        "num_test": num_test,
        "num_subsamples": len(subsamples),
        "num_texts": len(texts),
        "classes": {name: counts.get(label, 0) for label, name in enumerate(dataset.class_names)},
        "characters": _percentiles([len(text) for text in texts]),
        "tokens": {
            method.name: _tokens(spec, method, task, texts) for method in spec.methods if method.entry.count_tokens
        },
        "overlap": {
            likeness: _overlap(subsamples, rows, group_duplicates(texts, likeness)) for likeness in get_args(Likeness)
        },
    }


def is_described(spec: ExperimentSpec, description: Mapping[str, Any] | None) -> bool:
    """Whether an earlier description has all that this spec calls for."""
    if description is None:
        return False
    counting = {method.name for method in spec.methods if method.entry.count_tokens}
    return not description or counting <= set(description["tokens"])


def _percentiles(lengths: Sequence[int]) -> dict[str, int]:
    import numpy as np

    return {str(share): round(float(np.percentile(lengths, share))) for share in PERCENTILES}


def _tokens(spec: ExperimentSpec, method: MethodSpec, task: TaskSpec, texts: Sequence[str]) -> dict[str, Any]:
    assert method.entry.count_tokens is not None
    counted = method.entry.count_tokens(texts, options=spec.options(method, task.name), folders=spec.folders())
    cut = None if counted.limit is None else sum(count > counted.limit for count in counted.counts) / len(texts)
    return {**_percentiles(counted.counts), "limit": counted.limit, "cut": cut}


def _overlap(subsamples: Sequence[Subsample], rows: IntArray, groups: IntArray) -> dict[str, float]:
    import numpy as np

    shares: dict[str, float] = {}
    for other, one in combinations_with_replacement(SETS, 2):
        found = []
        for subsample in subsamples:
            mine, theirs = (groups[np.searchsorted(rows, getattr(subsample, name))] for name in (one, other))
            if one == other:
                _, place, count = np.unique(mine, return_inverse=True, return_counts=True)
                found.append(float(np.mean(count[place] > 1)))
            else:
                found.append(float(np.mean(np.isin(mine, theirs))))
        shares[f"{one}-{other}"] = float(np.mean(found))
    return shares
