"""Patterns and verbalizers: texts as cloze questions, whose masked tokens are the name of the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor

from peekbench import DataError, Task
from peekbench.errors import SpecError
from peekbench_finetune.options import PLACEHOLDER
from peekbench_lm.devices import to_device
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part
from peekbench_lm.tokenizer import encode


@dataclass(frozen=True, slots=True)
class Cloze:
    """A text in a pattern."""

    ids: list[int]
    """Token ids."""
    masks: list[int]
    """Positions of the masked tokens."""


class Verbalizer:
    """The tokens that stand for the classes.

    A class of several tokens is predicted by several masked tokens at once, as in the training of Schick and Schütze
    (2021), arXiv 2009.07118, section 3.2. The number of masked tokens is that of the longest class, so the question
    does not reveal the class. The score of a class is the mean log probability of its tokens, each at its masked token.

    Parameters
    ----------
    tokenizer
        Tokenizer of a masked language model.
    task
        The task, for its class names.
    words
        Words of a class instead of its name, by class name.

    Raises
    ------
    SpecError
        If `words` names a class that the task does not have.
    DataError
        If the tokenizer does not know the words of a class, or two classes have the same tokens.
    """

    def __init__(self, tokenizer: Any, task: Task, words: dict[str, str]) -> None:
        for name in words:
            if name not in task.class_names:
                close = get_close_matches(name, task.class_names, 1, cutoff=0)
                raise SpecError(
                    f"verbalizers: {name!r} is not a class of the task {task.name}; did you mean {close[0]!r}?"
                )
        self.tokens = [_find_tokens(tokenizer, words.get(name, name)) for name in task.class_names]
        """Token ids of each class."""
        seen: dict[tuple[int, ...], str] = {}
        for name, tokens in zip(task.class_names, self.tokens, strict=True):
            same = seen.setdefault(tuple(tokens), name)
            if not tokens or tokenizer.unk_token_id in tokens or same != name:
                problem = f"has the same tokens as {same!r}" if same != name else "is unknown to the tokenizer"
                raise DataError(
                    f"task {task.name}: the name of the class {name!r} {problem}; give words for it in the option "
                    "`verbalizers`"
                )
        self.num_masks = max(map(len, self.tokens))
        """Number of masked tokens in each question."""

    def scores(self, log_probabilities: Tensor) -> Tensor:
        """Return the score of each class; shape (num_texts, num_classes).

        Parameters
        ----------
        log_probabilities
            Natural log probabilities of the vocabulary at the masked tokens; shape (num_texts, num_masks, vocabulary).
        """
        padded = torch.tensor([[*tokens, *[-1] * (self.num_masks - len(tokens))] for tokens in self.tokens])
        tokens = to_device(padded, log_probabilities.device)  # (num_classes, num_masks)
        positions = torch.arange(self.num_masks, device=log_probabilities.device)
        scores = log_probabilities[:, positions, tokens]  # (num_texts, num_classes, num_masks)
        is_padding = tokens < 0
        return scores.masked_fill(is_padding, 0.0).sum(-1) / (~is_padding).sum(-1)


class Pattern:
    """Writes texts as cloze questions.

    Parameters
    ----------
    tokenizer
        A fast tokenizer of transformers with a mask token.
    pattern
        A sentence with the placeholders {text} and {mask}.
    num_masks
        Number of masked tokens.
    limit
        Maximum number of tokens of a question.

    Raises
    ------
    SpecError
        If the pattern without a text exceeds the limit.
    """

    def __init__(self, tokenizer: Any, pattern: str, num_masks: int, limit: int) -> None:
        self.tokenizer = tokenizer
        self.num_masks = num_masks
        self._limit = limit
        self._pieces: list[str] = PLACEHOLDER.split(pattern)
        self._is_mask_first = self._pieces.index("{mask}") < self._pieces.index("{text}")
        (empty,) = encode(tokenizer, [self._write("")], limit + 1)
        if len(empty) > limit:
            raise SpecError(
                f"pattern {pattern!r}: with {num_masks} masked tokens, it has more than the {limit} tokens of the "
                "context; increase context_length, or give shorter patterns or verbalizers"
            )
        self._room = limit - len(empty)

    def encode(self, texts: Sequence[str]) -> list[Cloze]:
        """Return the question of each text. Texts that do not fit are cut at the end."""
        short = [self._cut(text, self._room) for text in texts]
        encoded = encode(self.tokenizer, [self._write(text) for text in short], self._limit + 1)
        return [self._find_masks(self._fit(text, ids)) for text, ids in zip(short, encoded, strict=True)]

    def _write(self, text: str) -> str:
        values: dict[str, str] = {"{text}": text, "{mask}": self.tokenizer.mask_token * self.num_masks}
        return "".join(values.get(piece, piece) for piece in self._pieces)

    def _cut(self, text: str, num_tokens: int) -> str:
        """Return the first tokens of a text."""
        offsets = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)[
            "offset_mapping"
        ]
        if len(offsets) <= num_tokens:
            return text
        return text[: offsets[num_tokens - 1][1]] if num_tokens else ""

    def _fit(self, text: str, ids: list[int]) -> list[int]:
        """Return the token ids of a question, with a shorter text if the text has more tokens inside the pattern."""
        room = self._room
        while len(ids) > self._limit:
            room -= 1
            (ids,) = encode(self.tokenizer, [self._write(self._cut(text, room))], self._limit + 1)
        return ids

    def _find_masks(self, ids: list[int]) -> Cloze:
        """Find the masked tokens of the pattern; a text may contain the mask token too."""
        masks = [position for position, token in enumerate(ids) if token == self.tokenizer.mask_token_id]
        return Cloze(ids, masks[: self.num_masks] if self._is_mask_first else masks[-self.num_masks :])


def score_part(model: LanguageModel, part: Part, masks: Sequence[Sequence[int]], verbalizer: Verbalizer) -> Tensor:
    """Return the score of each class for the texts of a part; shape (num_texts, num_classes).

    Call it inside `forward_context`.

    Parameters
    ----------
    model
        A masked language model.
    part
        Part of a step on questions.
    masks
        Positions of the masked tokens in each text of the part.
    verbalizer
        Tokens of the classes.
    """
    indices = torch.tensor(
        [start + position for (start, _), positions in zip(part.spans, masks, strict=True) for position in positions]
    )
    logits = model.logits(part, to_device(indices, model.device)).float()  # (num_texts * num_masks, vocabulary)
    return verbalizer.scores(logits.log_softmax(-1).view(len(masks), verbalizer.num_masks, -1))


def _find_tokens(tokenizer: Any, words: str) -> list[int]:
    """Return the token ids of words in the middle of a sentence."""
    # Some tokenizers write the first word of a text without the space that precedes other words.
    start, full = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("a", f"a {words}"))
    return list(full[len(start) :])
