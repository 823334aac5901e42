"""Trains a language model with a linear layer to classify, and classifies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from peekbench.records import FloatArray, IntArray
from peekbench_lm.forward_context import computing
from peekbench_lm.layout import Part, Step
from peekbench_lm.model import LanguageModel
from peekbench_lm.names import Pooling
from peekbench_lm.training import Batch, Recipe, Trained, derive, fitting, train
from peekbench_lm.vocabulary import used_rows

HEAD_SPREAD = 0.02  # standard deviation of the linear layer's first weights, as in BERT and GPT-2


class Classifier:
    """A language model without its own head, and a linear layer on the hidden state that stands for a text."""

    def __init__(self, model: LanguageModel, num_classes: int, pooling: Pooling, seed: int) -> None:
        self.model = model
        self.pooling = pooling
        self.head = nn.Linear(model.hidden_size, num_classes)
        generator = torch.Generator().manual_seed(seed)
        nn.init.normal_(self.head.weight, std=HEAD_SPREAD, generator=generator)
        nn.init.zeros_(self.head.bias)
        self.head.to(model.device)

    def logits(self, part: Part) -> Tensor:
        """(num_texts, num_classes)."""
        hidden = self.model.hidden(part)
        logits: Tensor = self.head(pool(hidden, part, self.pooling))
        return logits.float()

    def fit(self, texts: Sequence[Sequence[int]], labels: IntArray | FloatArray, recipe: Recipe, seed: int) -> Trained:
        """Train all that has to be trained on labeled texts."""
        size = recipe.batch_size
        orders = [
            np.random.default_rng(derive(seed, "order", epoch)).permutation(len(texts))
            for epoch in range(recipe.epochs)
        ]
        epochs = [
            [self._batch(texts, labels, order[start : start + size]) for start in range(0, len(order), size)]
            for order in orders
        ]
        num_steps = sum(map(len, epochs))
        with used_rows(self.model, texts, recipe, num_steps):
            modules = [self.model.body, self.head, *filter(None, [self.model.words])]
            return train(self.model, modules, epochs, num_steps, recipe, derive(seed, "dropout"))

    def _batch(self, texts: Sequence[Sequence[int]], labels: IntArray | FloatArray, rows: IntArray) -> Batch:
        step = Step([texts[row] for row in rows])
        targets = torch.from_numpy(labels[rows[step.order]].astype(np.int64))

        def loss(part: Part) -> Tensor:
            return cross_entropy(self.logits(part), targets[part.texts].to(self.model.device), reduction="sum")

        return Batch(step, len(rows), loss)

    @torch.no_grad()
    def predict(self, texts: Sequence[Sequence[int]], batch_size: int) -> FloatArray:
        """Class probabilities; (len(texts), num_classes)."""
        self.model.network.eval()
        self.head.eval()
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        probabilities = np.empty((len(texts), self.head.out_features), dtype=np.float64)

        def attempt(parts: Sequence[Part]) -> Tensor:
            logits = []
            for part in parts:
                with computing(part, 0, "fp32"):
                    logits.append(self.logits(part))
            return torch.cat(logits)

        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            step = Step([texts[row] for row in rows])
            logits = fitting(self.model, attempt, step)
            probabilities[[rows[position] for position in step.order]] = logits.double().softmax(-1).cpu().numpy()
        return probabilities


def pool(hidden: Tensor, part: Part, pooling: Pooling) -> Tensor:
    """The hidden states that stand for a part's texts; (num_texts, hidden_size)."""
    starts = torch.tensor([start for start, _ in part.spans], device=hidden.device)
    ends = torch.tensor([end for _, end in part.spans], device=hidden.device)
    if pooling == "cls":
        return hidden[starts]
    if pooling == "last":
        return hidden[ends - 1]
    places = torch.arange(len(hidden), device=hidden.device)
    inside = (places >= starts[:, None]) & (places < ends[:, None])
    return (inside / inside.sum(1, keepdim=True)).to(hidden.dtype) @ hidden
