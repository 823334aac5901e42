"""Classification with a language model and a linear layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from peekbench.records import FloatArray, IntArray
from peekbench_lm.devices import to_device
from peekbench_lm.forward_context import forward_context
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part, Step
from peekbench_lm.options import Pooling, Recipe
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import Batch, Epochs, TrainingResult, shuffle_batches, train

HEAD_STANDARD_DEVIATION = 0.02  # of the initial weights of the linear layer, as in BERT and GPT-2


class Classifier:
    """A language model without its own head, and a linear layer on the hidden state that represents a text.

    Parameters
    ----------
    model
        Language model.
    num_classes
        Number of classes.
    pooling
        Hidden state that represents a text.
    seed
        Seed of the initial weights of the linear layer.
    """

    def __init__(self, model: LanguageModel, num_classes: int, pooling: Pooling, seed: int) -> None:
        self.model = model
        self.pooling = pooling
        self.head = nn.Linear(model.hidden_size, num_classes)
        generator = torch.Generator().manual_seed(seed)
        nn.init.normal_(self.head.weight, std=HEAD_STANDARD_DEVIATION, generator=generator)
        nn.init.zeros_(self.head.bias)
        self.head.to(model.device)

    def logits(self, part: Part) -> Tensor:
        """Return the logits of the texts of a part; shape (num_texts, num_classes)."""
        hidden = self.model.hidden(part)  # (num_tokens, hidden_size)
        logits: Tensor = self.head(pool(hidden, part, self.pooling))
        return logits.float()

    def fit(
        self, texts: Sequence[Sequence[int]], labels: IntArray | FloatArray, recipe: Recipe, seed: int
    ) -> TrainingResult:
        """Train all trainable weights on labeled texts.

        Parameters
        ----------
        texts
            Token ids of each text.
        labels
            Class of each text as an integer; shape (len(texts),). Or the probabilities of the classes of each text;
            shape (len(texts), num_classes).
        recipe
            Hyperparameters.
        seed
            Seed of order and dropout.

        Raises
        ------
        PeekbenchError
            If a single text does not fit into memory.
        """
        batches = [
            [self._make_batch(texts, labels, rows) for rows in epoch]
            for epoch in shuffle_batches(len(texts), recipe, seed)
        ]
        epochs = Epochs.of(batches)
        modules = [self.model.body, self.head]
        return train(self.model, modules, epochs, recipe, seed_for(seed, "dropout"))

    def _make_batch(self, texts: Sequence[Sequence[int]], labels: IntArray | FloatArray, rows: IntArray) -> Batch:
        step = Step([texts[row] for row in rows])
        targets = torch.from_numpy(labels[rows[step.order]])  # (len(rows),) or (len(rows), num_classes)
        targets = targets.long() if targets.ndim == 1 else targets.float()

        def loss(part: Part) -> Tensor:
            return cross_entropy(self.logits(part), to_device(targets[part.texts], self.model.device), reduction="sum")

        return Batch(step, len(rows), loss)

    @torch.no_grad()
    def predict(self, texts: Sequence[Sequence[int]], batch_size: int) -> FloatArray:
        """Return class probabilities; shape (len(texts), num_classes).

        Parameters
        ----------
        texts
            Token ids of each text.
        batch_size
            Number of texts that are computed at once; fewer if the device is out of memory.

        Raises
        ------
        PeekbenchError
            If a single text does not fit into memory.
        """
        self.model.network.eval()
        self.head.eval()
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        probabilities = np.empty((len(texts), self.head.out_features), dtype=np.float64)

        def attempt(parts: Sequence[Part]) -> Tensor:
            logits = []
            for part in parts:
                with forward_context(part, 0, "fp32"):
                    logits.append(self.logits(part))
            return torch.cat(logits)

        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            step = Step([texts[row] for row in rows])
            logits = self.model.run_in_parts(step, attempt)  # (len(rows), num_classes), in the order of the step
            probabilities[[rows[position] for position in step.order]] = logits.double().softmax(-1).cpu().numpy()
        return probabilities


def pool(hidden: Tensor, part: Part, pooling: Pooling) -> Tensor:
    """Return the hidden states that represent the texts of a part; shape (num_texts, hidden_size).

    Parameters
    ----------
    hidden
        Hidden states of the tokens; shape (num_tokens, hidden_size).
    part
        Part of a step.
    pooling
        Hidden state that represents a text.
    """
    starts, ends = to_device(torch.tensor(part.spans).T, hidden.device).unbind()
    if pooling == "cls":
        return hidden[starts]
    if pooling == "last":
        return hidden[ends - 1]
    indices = torch.arange(len(hidden), device=hidden.device)
    is_inside = (indices >= starts[:, None]) & (indices < ends[:, None])  # (num_texts, num_tokens)
    return (is_inside / is_inside.sum(1, keepdim=True)).to(hidden.dtype) @ hidden
