"""Answers that a causal model generates, token by token: the most probable tokens, or samples.

The keys and values of earlier tokens are kept, prompts of a batch are computed together, and answers that have ended
leave the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from peekbench import DataError
from peekbench.records import FloatArray
from peekbench_lm.continuations import KeysAndValues, attention_window, check_tree_support, compute_prefix
from peekbench_lm.devices import to_device
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import count_shared
from peekbench_lm.seeds import seed_for

LEVELS = 2**32  # resolution of the probabilities of sampled tokens; a product with a draw below 1 stays below the sum


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a model continues a prompt."""

    max_tokens: int
    """Maximum number of tokens of an answer."""
    temperature: float = 0.0
    """Divisor of the scores of words before one is drawn; 0 to choose the most probable word at each position."""
    stop: tuple[str, ...] = ()
    """Strings that end an answer, as the end-of-text token does."""


class Answer:
    """A continuation of a prompt, complete or in progress.

    Parameters
    ----------
    prompt
        Token ids of the prompt.
    draws
        A random number from 0 to 1 for each token of the longest answer; shape (max_tokens,).
    """

    def __init__(self, prompt: Sequence[int], draws: FloatArray) -> None:
        self.prompt = prompt
        """Token ids of the prompt."""
        self.draws = draws
        """A random number from 0 to 1 for each token of the longest answer; shape (max_tokens,)."""
        self.ids: list[int] = []
        """Token ids of the answer, with the end-of-text token or the tokens of the stop string, if it has ended so."""
        self.text = ""
        """The answer, without the end-of-text token or the stop string and what follows it."""
        self.is_complete = False
        """Whether nothing more is generated."""
        self.is_cut = False
        """Whether the maximum length ended the answer."""

    def append(self, token: int, tokenizer: Any, decoding: Decoding, ends: Collection[int]) -> None:
        """Add a generated token.

        Parameters
        ----------
        token
            Id of the token.
        tokenizer
            Tokenizer of the model.
        decoding
            When the answer ends.
        ends
            Token ids that end every answer.
        """
        self.ids.append(token)
        self.is_complete = token in ends or len(self.ids) == decoding.max_tokens
        if not self.is_complete and not decoding.stop:
            return  # only a complete answer needs its text
        text = tokenizer.decode(self.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        places = [place for stop in decoding.stop if (place := text.find(stop)) >= 0]
        self.is_cut = self.is_complete and token not in ends and not places
        self.is_complete = self.is_complete or bool(places)
        self.text = text[: min(places, default=len(text))]


@torch.no_grad()
def generate(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    decoding: Decoding,
    batch_size: int,
    num_samples: int = 1,
    seed: int = 0,
) -> list[list[Answer]]:
    """Return answers to each prompt: one list of `num_samples` answers per prompt. Computed in fp32.

    The random numbers of an answer depend only on the seed, the prompt and the number of the answer, so other prompts
    affect it only by rounding. Equal prompts have equal answers.

    Parameters
    ----------
    model
        A causal model.
    prompts
        Token ids of each prompt, at least one. A prompt and its answer must fit into the context of the model.
    decoding
        Length, temperature and ends of the answers.
    batch_size
        Number of answers that are computed at once; fewer if the device is out of memory.
    num_samples
        Number of answers per prompt.
    seed
        Seed of the samples.

    Raises
    ------
    DataError
        If the model computes NaN, or keeps other states than keys and values.
    """
    model.network.eval()
    if not check_tree_support(model):
        raise DataError(
            f"{model.folder}: the model keeps other states than the keys and values of earlier tokens, which "
            "generation needs; choose a transformer such as gpt2"
        )
    answers = [
        [Answer(prompt, _draw(prompt, decoding, seed, number)) for number in range(num_samples)] for prompt in prompts
    ]
    rows = sorted((answer for row in answers for answer in row), key=lambda answer: len(answer.prompt))
    prefix = _Prefix(model, prompts, decoding.max_tokens)
    for start in range(0, len(rows), batch_size):
        batch = rows[start : start + batch_size]
        model.micro_batch.run(len(batch), partial(_complete, model, batch, decoding, prefix))
    return answers


def _draw(prompt: Sequence[int], decoding: Decoding, seed: int, number: int) -> FloatArray:
    """Return the random numbers of an answer."""
    if not decoding.temperature:
        return np.zeros(decoding.max_tokens)
    return np.random.default_rng(seed_for(seed, *prompt, "answer", number)).random(decoding.max_tokens)


def end_tokens(model: LanguageModel) -> set[int]:
    """Return the ids of the tokens that end a text: that of the tokenizer, and those of the model's configuration."""
    ends = getattr(model.network.generation_config, "eos_token_id", None)
    ids = ends if isinstance(ends, list) else [ends]
    return {token for token in (*ids, model.tokenizer.eos_token_id) if token is not None}


def _complete(model: LanguageModel, answers: Sequence[Answer], decoding: Decoding, prefix: _Prefix, size: int) -> None:
    """Complete answers, `size` at once. Those that an attempt without enough memory has completed stay as they are."""
    ends = end_tokens(model)
    remaining = [answer for answer in answers if not answer.is_complete]
    for answer in remaining:
        answer.ids.clear()
    for start in range(0, len(remaining), size):
        rows = remaining[start : start + size]
        decoder = _Decoder(model, prefix)
        with model.default_attention():
            while rows:
                draws = [answer.draws[len(answer.ids)] for answer in rows]
                tokens = choose_tokens(
                    decoder.scores(rows), decoding.temperature, torch.tensor(draws, dtype=torch.float64)
                )
                for answer, token in zip(rows, tokens.tolist(), strict=True):
                    answer.append(token, model.tokenizer, decoding, ends)
                rows = [answer for answer in rows if not answer.is_complete]


def choose_tokens(scores: Tensor, temperature: float, draws: Tensor) -> Tensor:
    """Return the token that each random number selects, or the most probable token if the temperature is 0.

    A token is the one at which the sum of the probabilities, in the order of the ids, exceeds the random number. The
    sums are of integers, so they do not depend on the order in which a device adds them.

    Parameters
    ----------
    scores
        Scores of the words of the vocabulary; shape (n, vocabulary).
    temperature
        Divisor of the scores.
    draws
        Random numbers from 0 to 1 on the CPU, in fp64; shape (n,).

    Returns
    -------
    Tensor
        Token ids; shape (n,).

    Raises
    ------
    DataError
        If scores are NaN, which would select any token.
    """
    if scores.amax(-1).isnan().any():
        raise DataError(
            "the scores of the next token are NaN, as after a training that diverged; choose a smaller learning_rate, "
            "or another model if nothing was trained"
        )
    if not temperature:
        return scores.argmax(-1)
    sums = ((scores.float() / temperature).softmax(-1) * LEVELS).long().cumsum(-1)
    thresholds = (draws * sums[:, -1].cpu()).long()
    return torch.searchsorted(sums, to_device(thresholds, sums.device)[:, None], right=True)[:, 0]


class _Prefix:
    """Tokens that begin all prompts, and their keys and values, which are computed once.

    There are none if a prompt and its answer may be longer than the attention window, which would count the padding
    between these tokens and those of a short prompt, and so end too early.
    """

    def __init__(self, model: LanguageModel, prompts: Sequence[Sequence[int]], max_tokens: int) -> None:
        longest = max(map(len, prompts)) + max_tokens
        self.length = 0
        if longest <= attention_window(model):
            self.length = count_shared(prompts)
        self.keys_and_values: KeysAndValues = []
        if self.length:
            with model.default_attention():
                self.keys_and_values = compute_prefix(model, prompts[0][: self.length])


class _Decoder:
    """Computes the scores of the next token of answers in progress, and keeps the keys and values of all tokens.

    Prompts are padded on the left, so their last tokens are in one column.

    Texts on one prompt share its computation.
    """

    def __init__(self, model: LanguageModel, prefix: _Prefix) -> None:
        self._model = model
        self._prefix = prefix
        self._answers: Sequence[Answer] = ()
        self._is_real: Tensor  # 1 for tokens, 0 for padding; shape (rows, columns)

    def scores(self, answers: Sequence[Answer]) -> Tensor:
        """Return scores of the words of the vocabulary; shape (len(answers), vocabulary).

        Parameters
        ----------
        answers
            Answers of the first call, each longer by a token at each call, without those that are complete.
        """
        if not self._answers:
            return self._read_prompts(answers)
        if len(answers) < len(self._answers):
            kept = [row for row, answer in enumerate(self._answers) if not answer.is_complete]
            self._select(kept)
        self._answers = answers
        ids = torch.tensor([[answer.ids[-1]] for answer in answers])
        positions = torch.tensor([[len(answer.prompt) + len(answer.ids) - 1] for answer in answers])
        self._is_real = torch.cat([self._is_real, torch.ones_like(ids)], dim=1)
        return self._compute(ids, positions)

    def _read_prompts(self, answers: Sequence[Answer]) -> Tensor:
        """Compute each different prompt once, and return the scores of the first tokens of the answers."""
        self._answers = answers
        places = {
            prompt: place for place, prompt in enumerate(dict.fromkeys(tuple(answer.prompt) for answer in answers))
        }
        num_shared = self._prefix.length
        own = [prompt[num_shared:] for prompt in places]
        width = max(map(len, own))
        ids = torch.tensor([[*[0] * (width - len(prompt)), *prompt] for prompt in own])
        columns = torch.arange(width) - (width - torch.tensor([len(prompt) for prompt in own]))[:, None]
        self._is_real = torch.cat([torch.ones(len(own), num_shared), columns >= 0], dim=1).long()
        self._cache = DynamicCache(
            [tuple(kind.expand(len(own), -1, -1, -1) for kind in layer) for layer in self._prefix.keys_and_values]
        )
        scores = self._compute(ids, columns.clamp(min=0) + num_shared)
        rows = [places[tuple(answer.prompt)] for answer in answers]
        if len(rows) > len(own):
            self._select(rows)
        return scores[to_device(torch.tensor(rows), scores.device)]

    def _select(self, rows: Sequence[int]) -> None:
        """Keep some rows of all states, which may be repeated."""
        indices = torch.tensor(rows)
        self._is_real = self._is_real[indices]
        self._cache.batch_select_indices(to_device(indices, self._model.device))

    def _compute(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return the scores after the last column of ids; ids and positions have the shape (rows, columns)."""
        model = self._model
        inputs: dict[str, Any] = {
            "input_ids": to_device(ids, model.device),
            "position_ids": to_device(positions + model.first_position, model.device),
            "attention_mask": to_device(self._is_real, model.device),
            "past_key_values": self._cache,
            "use_cache": True,
        }

        def select(module: Any, arguments: Any, output: Any) -> Any:
            output.last_hidden_state = output.last_hidden_state[:, -1:]
            return output

        with model.body.register_forward_hook(select):
            logits: Tensor = model.network(**inputs).logits[:, 0]
        return logits
