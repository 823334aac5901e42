"""Whether a language model prefers the order in which texts were published, as one would that has seen them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from peekbench import Analysis, Context, DataError, Dataset, Folders, Options
from peekbench_lm.installed import check_installed
from peekbench_lm.names import DeviceName, Precision
from peekbench_prompting.orders import (
    Preference,
    Shard,
    compare,
    make_shards,
    neighbor_scores,
    same_label,
    shared_words,
)

if TYPE_CHECKING:
    import torch

    from peekbench_lm.model import LanguageModel
    from peekbench_prompting.orders import Likeness, Scores

FIELDS = frozenset({"text", "label", "class_name"})


class Exchangeability(Options):
    model: str = Field(min_length=1)
    """A causal model's id on the Hub, a folder (`./` in front; relative to the spec), or builtin:gpt2-nano."""
    revision: str = ""
    """Commit or branch of a model on the Hub; by default the newest."""
    reference: str = ""
    """Another causal model, which cannot have seen the texts: where it prefers the published order too, that order is
    what anybody would prefer, and says nothing of what `model` has seen."""
    reference_revision: str = ""
    """Its commit or branch."""
    row: str = "{text}\n"
    """What a row looks like: as in the file that the model may have seen. {text}, {label} and {class_name} are filled
    in."""
    max_texts: int = Field(default=1000, ge=2)
    """So many of a task's first rows are read."""
    shards: int = Field(default=50, ge=5)
    """Stretches of rows that are shuffled, each within itself."""
    permutations: int = Field(default=50, ge=5)
    """Random orders of each shard."""
    level: float = Field(default=0.95, gt=0, lt=1)
    """A preference is one where the adjusted p is at most 1 - level."""
    context_length: int = Field(default=2048, ge=8)
    """Tokens that are read at once, where the model can read as many."""
    stride: int | None = Field(default=None, ge=1)
    """Where a shard is longer: how many tokens each window of it adds; by default half a context."""
    batch_tokens: int = Field(default=16384, ge=1)
    """Tokens that are computed together; fewer where memory runs out."""
    precision: Precision = "fp32"
    """Of matrix products. bf16 is quicker on a GPU; its rounding adds noise, which costs power alone."""
    device: DeviceName = "auto"
    """By default a GPU where there is one."""
    threads: int = Field(default=1, ge=1)
    """CPU threads. Numbers differ in the last digits with it."""

    @field_validator("row")
    @classmethod
    def _has_known_fields(cls, row: str) -> str:
        named = {name for _, name, _, _ in Formatter().parse(row) if name is not None}
        if "text" not in named or not named <= FIELDS:
            raise ValueError(f"{row!r} must hold {{text}}, and may hold {{label}} and {{class_name}}, no other braces")
        return row


@dataclass(frozen=True, slots=True)
class Rows:
    """What is read of a task, and in which orders."""

    texts: Sequence[str]
    labels: Sequence[float]
    joined: Sequence[str]
    """The rows as they are put to a model."""
    shards: Sequence[Shard]
    seed: Sequence[int]

    def of(self, shard: Shard) -> slice:
        return slice(shard.first, shard.first + len(shard.orders[0]))


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one task."""

    rows: Rows
    tokens: float
    """Of a row, the median."""
    model: Preference
    reference: Preference | None
    words: Preference
    labels: Preference


def exchangeability(tasks: Mapping[str, Dataset], *, options: Exchangeability, context: Context) -> Analysis:
    """Compare log likelihoods of the published order of each task's texts with those of random orders.

    Source: Oren et al. (2023), https://arxiv.org/abs/2310.17623, "sharded likelihood comparison test"

    Raises
    ------
    DataError
        Where a task has no texts or too few, or the model is not a causal one or cannot be had.
    SpecError
        Where there is no such device.
    """
    check_installed()
    from peekbench_lm.devices import choose_device, reproducibly
    from peekbench_prompting.findings import report

    rows = {name: _rows(name, dataset, options, context.seed) for name, dataset in tasks.items()}
    device = choose_device(options.device)
    with reproducibly(device, options.threads):
        scores, tokens, limit = _score(options.model, options.revision, rows, options, context.folders, device)
        reference: Mapping[str, Scores] = {}
        if options.reference:
            reference, _, _ = _score(
                options.reference, options.reference_revision, rows, options, context.folders, device
            )
    found = {
        name: Found(
            rows=mine,
            tokens=tokens[name],
            model=compare(scores[name], mine.seed),
            reference=compare(reference[name], mine.seed) if reference else None,
            words=_compare_neighbors(mine, shared_words, mine.texts),
            labels=_compare_neighbors(mine, same_label, mine.labels),
        )
        for name, mine in rows.items()
    }
    return report(found, options, limit)


def _compare_neighbors(rows: Rows, alike: Callable[[Sequence[Any]], Likeness], values: Sequence[Any]) -> Preference:
    """Whether neighbors are more alike in the published order than in random ones."""
    return compare(neighbor_scores(rows.shards, [alike(values[rows.of(shard)]) for shard in rows.shards]), rows.seed)


def _rows(name: str, dataset: Dataset, options: Exchangeability, seed: int) -> Rows:
    if not isinstance(dataset.inputs, Sequence):
        raise DataError(f"task {name}: its inputs are no texts, which language models read; remove it")
    number = min(len(dataset.inputs), options.max_texts)
    needed = 2 * options.shards
    if number < needed:
        raise DataError(
            f"task {name}: {number} texts, but {options.shards} shards of two texts at least take {needed}; lower "
            f"`shards`{', or raise `max_texts`' if number < len(dataset.inputs) else ''}"
        )
    texts = [str(dataset.inputs[row]) for row in range(number)]
    given = dataset.labels[:number]
    labels = list(given) if isinstance(given, Sequence) else given.tolist()
    names = dataset.class_names
    joined = [
        options.row.format(text=text, label=label, class_name=names[int(label)] if names else label)
        for text, label in zip(texts, labels, strict=True)
    ]
    own = [seed, *name.encode()]
    return Rows(texts, labels, joined, make_shards(number, options.shards, options.permutations, own), own)


def _score(
    model: str,
    revision: str,
    rows: Mapping[str, Rows],
    options: Exchangeability,
    folders: Folders,
    device: torch.device,
) -> tuple[dict[str, Scores], dict[str, float], int]:
    """Log likelihoods of all orders of each task, the median tokens of its rows, and how many are read at once."""
    from peekbench_lm.folder import find_model
    from peekbench_lm.model import borrow

    loan = borrow(find_model(model, revision, folders), device, "frozen")
    if loan.model.kind != "causal":
        raise DataError(f"model {model} fills in masked tokens and gives texts no likelihood; choose a causal model")
    loan.model.precision = options.precision
    limit = loan.model.limit(options.context_length)
    scores, tokens = {}, {}
    for name, mine in rows.items():
        encoded = loan.model.tokenizer(list(mine.joined), add_special_tokens=False, verbose=False)["input_ids"]
        tokens[name] = float(sorted(map(len, encoded))[len(encoded) // 2])
        scores[name] = _score_orders(loan.model, encoded, mine, options, limit)
    return scores, tokens, limit


def _score_orders(
    model: LanguageModel, encoded: Sequence[Sequence[int]], rows: Rows, options: Exchangeability, limit: int
) -> Scores:
    """Log likelihoods of a task's orders.

    Rows are cut into tokens one by one: so all orders of a shard hold the very same tokens. Orders that differ by an
    exchange of equal rows are computed once, so that they differ by nothing, not even by rounding.
    """
    import numpy as np

    from peekbench_lm.likelihood import log_likelihoods

    scores = []
    for shard in rows.shards:
        mine = encoded[rows.of(shard)]
        sequences = [tuple(token for row in order for token in mine[row]) for order in shard.orders]
        different = list(dict.fromkeys(sequences))
        found = log_likelihoods(model, different, limit, options.stride or max(1, limit // 2), options.batch_tokens)
        likelihood = dict(zip(different, found, strict=True))
        scores.append([likelihood[sequence] for sequence in sequences])
    return np.array(scores)


def pin_models(*, options: Exchangeability, folders: Folders) -> Mapping[str, Any]:
    """The commits of models on the Hub."""
    from peekbench_lm.folder import pin_model

    pinned = pin_model(options.model, options.revision, folders)
    if options.reference:
        reference = pin_model(options.reference, options.reference_revision, folders)
        pinned |= {f"reference_{name}": value for name, value in reference.items()}
    return pinned


def prefetch_models(*, options: Exchangeability, folders: Folders) -> Mapping[str, Any]:
    """Download the models, or make them, where they are not here yet."""
    check_installed()
    from peekbench_lm.folder import describe_model

    known = describe_model(options.model, options.revision, folders)
    if options.reference:
        reference = describe_model(options.reference, options.reference_revision, folders)
        known |= {"reference": reference}
    return known
