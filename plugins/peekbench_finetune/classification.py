"""Classification with a language model and a new linear layer, or with the head of BERT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from peekbench.records import FloatArray, IntArray, TaskKind
from peekbench_finetune.options import Head
from peekbench_lm.devices import to_device
from peekbench_lm.forward_context import Dropout, current_context, forward_context
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part, Step
from peekbench_lm.model_files import read_pooler
from peekbench_lm.options import Pooling, Recipe
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import Batch, Epochs, TrainingResult, shuffle_batches, train

HEAD_STANDARD_DEVIATION = 0.02  # of the initial weights of new layers, as in BERT and GPT-2


class TextDropout(Dropout):
    """Dropout of one vector for each text. It draws one mask for all texts of a step."""

    def forward(self, vectors: Tensor) -> Tensor:
        """Apply dropout to vectors of shape (num_texts, size)."""
        part, size = current_context().part, vectors.shape[-1]
        keep = current_context().keep(self.p if self.training else 0, len(part.step.texts) * size)
        if keep is None:
            return vectors
        return vectors * keep.view(-1, size)[part.texts].to(vectors.dtype).mul_(1 / (1 - self.p))


class BertHead(nn.Module):
    """The layers of `BertForSequenceClassification` on the first token: pooler, tanh, dropout and a linear layer.

    Parameters
    ----------
    pooler
        First layer.
    linear
        Last layer.
    config
        Configuration of the model, which has the dropout probability.
    """

    def __init__(self, pooler: nn.Linear, linear: nn.Linear, config: Any) -> None:
        super().__init__()
        probability = getattr(config, "classifier_dropout", None)
        self.pooler = pooler
        self.dropout = TextDropout(getattr(config, "hidden_dropout_prob", 0.1) if probability is None else probability)
        self.linear = linear

    def forward(self, hidden: Tensor) -> Tensor:
        """Return logits of shape (num_texts, num_classes) for hidden states of shape (num_texts, hidden_size)."""
        logits: Tensor = self.linear(self.dropout(self.pooler(hidden).tanh()))
        return logits


class Classifier:
    """A language model without its own head, and layers on the hidden state that represents a text.

    Parameters
    ----------
    model
        Language model.
    num_classes
        Number of classes, or of labels of a multi-label task.
    pooling
        Hidden state that represents a text.
    seed
        Seed of the initial weights of new layers.
    head
        Layers on the hidden state.
    kind
        Kind of the task: a text has one class, or any number of labels ('multilabel').

    Raises
    ------
    DataError
        If the head is `bert` and the checkpoint has no pooler.
    """

    def __init__(
        self,
        model: LanguageModel,
        num_classes: int,
        pooling: Pooling,
        seed: int,
        head: Head = "linear",
        kind: TaskKind = "classification",
    ) -> None:
        self.model = model
        self.is_multilabel = kind == "multilabel"
        self.pooling = pooling
        self.num_classes = num_classes
        generator = torch.Generator().manual_seed(seed)
        linear = _make_linear(model.hidden_size, num_classes, generator)
        self.head: nn.Module = linear
        if head != "linear":
            pooler = _make_linear(model.hidden_size, model.hidden_size, generator)
            if head == "bert":
                weight, bias = read_pooler(model.folder)
                pooler.load_state_dict({"weight": weight, "bias": bias})
            self.head = BertHead(pooler, linear, model.network.config)
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
            Class of each text as an integer; shape (len(texts),). Or 0 and 1 for each label; shape
            (len(texts), num_classes).
        recipe
            Hyperparameters.
        seed
            Seed of order and dropout.
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
            logits, expected = self.logits(part), to_device(targets[part.texts], self.model.device)
            if self.is_multilabel:
                # As in transformers, the loss of a text is the mean over labels.
                return binary_cross_entropy_with_logits(logits, expected, reduction="sum") / self.num_classes
            return cross_entropy(logits, expected, reduction="sum")

        return Batch(step, len(rows), loss)

    @torch.no_grad()
    def predict(self, texts: Sequence[Sequence[int]], batch_size: int) -> FloatArray:
        """Return probabilities of the classes, or of each label; shape (len(texts), num_classes).

        Parameters
        ----------
        texts
            Token ids of each text.
        batch_size
            Number of texts that are computed at once; fewer if the device is out of memory.
        """
        self.model.network.eval()
        self.head.eval()
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        probabilities = np.empty((len(texts), self.num_classes), dtype=np.float64)

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
            probabilities[[rows[position] for position in step.order]] = self._link(logits.double()).cpu().numpy()
        return probabilities

    def _link(self, logits: Tensor) -> Tensor:
        """Return the probabilities of logits."""
        if self.is_multilabel:
            return logits.sigmoid()
        return logits.softmax(-1)


def _make_linear(size: int, num_outputs: int, generator: torch.Generator) -> nn.Linear:
    """Return a new linear layer."""
    layer = nn.Linear(size, num_outputs)
    nn.init.normal_(layer.weight, std=HEAD_STANDARD_DEVIATION, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


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
