"""Methods that use unlabeled texts in context, without training: examples with the model's own labels, and others.

They score the unlabeled texts with the plain prompt first. A text that is one of the unlabeled texts may then be an
example before itself, or its own neighbor, which is the effect that the arm `test` measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.special import entr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot
from torch import Tensor

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray, IntArray
from peekbench_lm.devices import deterministic
from peekbench_lm.fit import load_for_fit
from peekbench_lm.forward_context import forward_context
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part, Step
from peekbench_lm.once import compute_once
from peekbench_lm.tokenizer import encode
from peekbench_prompting.fit import make_encoder, make_predictor, scoring_precision
from peekbench_prompting.frame import PromptFrame
from peekbench_prompting.options import Criterion, NeighborVoting, PromptChoice, Selection, SelfLabeled
from peekbench_prompting.prompts import ExamplePrompts


def self_labeled(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: SelfLabeled, context: Context
) -> Predictor:
    """Prompt the model with unlabeled texts and its own answers to them as examples.

    The parameters and the errors are those of `fit.prompt`, but unlabeled texts are used and the train set is not.

    Source: the method without iterations of Gu et al. (2025), arXiv 2503.03062.
    """
    metrics: dict[str, float] = {}
    with load_for_fit(options, context, metrics) as lease:
        encoder = partial(make_encoder, lease.model, task, options)
        plain = make_predictor(lease, ExamplePrompts(encoder), options, metrics)
        if unlabeled is None:
            return plain
        rows, labels = choose_self_labeled(plain.predict(unlabeled), options.num_examples, options.selection)
        examples = [
            (str(unlabeled[row]), task.class_names[label])
            for row, label in zip(rows.tolist(), labels.tolist(), strict=True)
        ]
        prompts = ExamplePrompts(encoder, examples)
        metrics["num_examples"] = prompts.num_examples
        return make_predictor(lease, prompts, options, metrics)


def choose_self_labeled(
    probabilities: FloatArray, num_per_class: int, selection: Selection
) -> tuple[IntArray, IntArray]:
    """Choose texts as examples, and the class of each.

    Parameters
    ----------
    probabilities
        Class probabilities of the unlabeled texts; shape `(n, num_classes)`.
    num_per_class
        Number of examples divided by the number of classes.
    selection
        `balanced`: the classes take turns; each chooses the remaining text of which it is most probable. `confident`:
        the texts whose most probable class is most probable, with this class.

    Returns
    -------
    rows, labels
        Row and class of each example, in the order of preference; at most n of them.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    >>> [array.tolist() for array in choose_self_labeled(probabilities, 1, "balanced")]
    [[0, 2], [0, 1]]
    >>> [array.tolist() for array in choose_self_labeled(probabilities, 1, "confident")]
    [[0, 1], [0, 0]]
    """
    num_texts, num_classes = probabilities.shape
    number = min(num_texts, num_per_class * num_classes)
    if selection == "confident":
        rows = np.argsort(-probabilities.max(axis=1), kind="stable")[:number]
        return rows, probabilities[rows].argmax(axis=1)
    remaining = probabilities.copy()
    labels = np.arange(number) % num_classes
    rows = np.empty(number, dtype=np.int64)
    for place, label in enumerate(labels):
        rows[place] = remaining[:, label].argmax()
        remaining[rows[place]] = -1
    return rows, labels


def neighbor_voting(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: NeighborVoting, context: Context
) -> Predictor:
    """Average the class probabilities of a text with those of the most similar unlabeled texts.

    The parameters and the errors are those of `fit.prompt`, but unlabeled texts are used and the train set is not.

    Source: Zou et al. (2025), arXiv 2502.19163. There, answers vote, and no text is its own neighbor, because the
    unlabeled texts are not those of the test set.
    """
    metrics: dict[str, float] = {}
    with load_for_fit(options, context, metrics) as lease:
        encoder = partial(make_encoder, lease.model, task, options)
        plain = make_predictor(lease, ExamplePrompts(encoder), options, metrics)
        if unlabeled is None:
            return plain
        votes = plain.predict(unlabeled)
        embed = _make_embedding(unlabeled, lease.model, options)
        known = embed(unlabeled)

    def predict(inputs: Inputs) -> FloatArray:
        own = plain.predict(inputs)
        with deterministic(lease.model.device, options.threads):
            similarities = safe_sparse_dot(embed(inputs), known.T, dense_output=True)
        if options.exclude_self:
            similarities[np.equal.outer(np.array(inputs, dtype=object), np.array(unlabeled, dtype=object))] = -np.inf
        return average_votes(own, votes, similarities, options.num_neighbors)

    return Predictor(predict, metrics)


def average_votes(own: FloatArray, votes: FloatArray, similarities: FloatArray, num_neighbors: int) -> FloatArray:
    """Return the mean class probabilities of each text and its nearest unlabeled texts.

    Parameters
    ----------
    own
        Class probabilities of the texts; shape `(num_texts, num_classes)`.
    votes
        Class probabilities of the unlabeled texts; shape `(num_unlabeled, num_classes)`.
    similarities
        Similarity of each text to each unlabeled text, `-inf` for no vote; shape `(num_texts, num_unlabeled)`.
    num_neighbors
        Number of neighbors.

    Returns
    -------
    array of shape `(num_texts, num_classes)`

    Examples
    --------
    >>> own, votes = np.array([[1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> average_votes(own, votes, np.array([[0.9, 0.1]]), 1).tolist()
    [[0.75, 0.25]]
    """
    nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :num_neighbors]
    counts = np.isfinite(np.take_along_axis(similarities, nearest, axis=1))  # (num_texts, num_neighbors)
    sums = own + (votes[nearest] * counts[:, :, None]).sum(axis=1)
    averages: FloatArray = sums / (1 + counts.sum(axis=1, keepdims=True))
    return averages


def _make_embedding(unlabeled: Inputs, model: LanguageModel, options: NeighborVoting) -> Callable[[Inputs], Any]:
    """Return a function from texts to rows of unit length, sparse for words; products are cosine similarities."""
    if options.similarity == "tfidf":
        try:
            vectorizer = TfidfVectorizer(sublinear_tf=True).fit(unlabeled)
        except ValueError as error:
            raise DataError("the unlabeled texts contain no words; write `similarity: hidden`") from error
        return lambda texts: vectorizer.transform(texts)
    center = embed_texts(model, unlabeled, options).mean(axis=0)
    return lambda texts: np.asarray(normalize(embed_texts(model, texts, options) - center))


@torch.no_grad()
def embed_texts(model: LanguageModel, texts: Inputs, options: NeighborVoting) -> FloatArray:
    """Return the mean of the last hidden states of each text, without a prompt; shape `(len(texts), hidden_size)`.

    Parameters
    ----------
    model
        A causal language model.
    texts
        Texts to embed.
    options
        Length of the context and batch size.
    """
    model.network.eval()
    limit = model.context_limit(options.context_length)
    ids = encode(model.tokenizer, [PromptFrame.cut(text) for text in texts], limit)
    precision = scoring_precision(options.scoring, model)
    batch_size = options.scoring.batch_size

    def average(parts: Sequence[Part]) -> Tensor:
        means = []
        for part in parts:
            with forward_context(part, 0, precision):
                hidden = model.hidden(part).double()
            means += [hidden[start:end].mean(dim=0) for start, end in part.spans]
        return torch.stack(means).cpu()

    def compute(ids: Sequence[Sequence[int]]) -> FloatArray:
        embeddings = []
        for start in range(0, len(ids), batch_size):
            step = Step(ids[start : start + batch_size])
            sorted_means = model.run_in_parts(step, average).numpy()  # (number of texts, hidden_size)
            embeddings.append(sorted_means[np.argsort(step.order)])
        return np.concatenate(embeddings)

    return compute_once(model, ("mean of hidden states", precision), ids, compute)


def prompt_choice(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: PromptChoice, context: Context
) -> Predictor:
    """Choose one of several prompts by its answers to the unlabeled texts, and use it.

    The first candidate, number 0 in the metric `chosen_prompt`, is the prompt of `zero_shot`. The parameters and the
    errors are those of `fit.prompt`, but unlabeled texts are used and the train set is not.

    Sources: agreement, Liao et al. (2022), arXiv 2211.04668, with mean probabilities as their ensemble; mutual
    information, Sorensen et al. (2022), arXiv 2203.11364.
    """
    metrics: dict[str, float] = {}
    with load_for_fit(options, context, metrics) as lease:

        def put_into(template: str | None) -> ExamplePrompts:
            return ExamplePrompts(partial(make_encoder, lease.model, task, options, template=template))

        if unlabeled is None:
            return make_predictor(lease, put_into(None), options, metrics)
        candidates = [put_into(template) for template in (None, *options.templates)]
        scored = [make_predictor(lease, prompts, options, {}).predict(unlabeled) for prompts in candidates]
        values = rate_prompts(np.stack([np.asarray(probabilities) for probabilities in scored]), options.criterion)
        chosen = int(values.argmax())
        metrics |= {f"{options.criterion}_{number}": value for number, value in enumerate(values.tolist())}
        metrics["chosen_prompt"] = chosen
        return make_predictor(lease, candidates[chosen], options, metrics)


def rate_prompts(probabilities: FloatArray, criterion: Criterion) -> FloatArray:
    """Return the value of each prompt by which one is chosen.

    Parameters
    ----------
    probabilities
        Class probabilities by each prompt of each unlabeled text; shape `(num_prompts, n, num_classes)`.
    criterion
        `agreement`: share of answers that equal those of the mean probabilities of all prompts. `confidence`: mean
        probability of the answers. `mutual_information`: of texts and answers, in nats.

    Returns
    -------
    array of shape `(num_prompts,)`

    Examples
    --------
    >>> certain, uncertain = [[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.6, 0.4]]
    >>> [rate_prompts(np.array([certain, uncertain]), name).round(2).tolist()
    ...  for name in ("agreement", "confidence", "mutual_information")]
    [[1.0, 0.5], [0.9, 0.6], [0.37, 0.0]]
    """
    if criterion == "agreement":
        ensemble = probabilities.mean(axis=0).argmax(axis=-1)  # (n,)
        values = (probabilities.argmax(axis=-1) == ensemble).mean(axis=1)
    elif criterion == "confidence":
        values = probabilities.max(axis=-1).mean(axis=1)
    else:
        values = entr(probabilities.mean(axis=1)).sum(axis=-1) - entr(probabilities).sum(axis=-1).mean(axis=1)
    return np.asarray(values, dtype=np.float64)
