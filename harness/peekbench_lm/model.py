"""Language models in memory: loaded once a process, lent to one fit at a time, restored before the next."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from peekbench import DataError
from peekbench_lm import attention
from peekbench_lm.adapters import MARK, put_adapters, remove_adapters
from peekbench_lm.checkpointing import set_checkpointing
from peekbench_lm.devices import MicroBatch, keep_freed_memory
from peekbench_lm.dropout import replace_dropout
from peekbench_lm.folder import ModelFolder, model_kind
from peekbench_lm.forward_context import computing
from peekbench_lm.head import log_probabilities, summed_loss
from peekbench_lm.layout import Part, Step
from peekbench_lm.loading import load_network
from peekbench_lm.names import Held, Kind, Precision
from peekbench_lm.tokens import context_limit, load_tokenizer
from peekbench_lm.vocabulary import TiedRows, UsedRows

TOLERANCE = 1e-3  # a wrong layout shows as differences of the numbers' own size
ROUNDING = 1e-5  # of numbers that are computed from the same tokens
LONG_PROBE = 160  # tokens; more than the windows of models that look at a token's neighbors only


class LanguageModel:
    """A masked or causal language model with its tokenizer."""

    def __init__(self, folder: Path, device: torch.device, held: Held = "trained") -> None:
        """Load a model.

        Raises
        ------
        DataError
            Where the folder's files are no language model, lack weights, or cannot be held so.
        """
        if device.type == "cpu":
            keep_freed_memory()
        self.kind: Kind = model_kind(folder)
        self.tokenizer = load_tokenizer(folder)
        self.folder = folder
        if self.kind == "masked" and self.tokenizer.mask_token_id is None:
            raise DataError(f"{folder}: its tokenizer has no mask token; give one that has, or a causal model")
        self.held: Held = held
        with quiet():
            self.network = load_network(folder, self.kind, held, device)
        """As transformers has it, with its language-model head."""
        self.device = device
        self.precision: Precision = "fp32"
        """Of matrix products."""
        self.micro_batch = MicroBatch()
        self.words: UsedRows | TiedRows | None = None
        """What looks up rows of the word embedding in its place."""
        self.tolerance = TOLERANCE
        """How much the same numbers may differ, as a share of their size, where they are computed in another way."""
        self.takes_trees: bool | None = None
        """Whether it computes trees of continuations; None until that is tried."""
        self._usual_attention = ""
        self._first_position: int | None = None
        self._has_linear_head = False
        self.hidden_size = 0
        self._choose_layout()
        kept = self.network.named_parameters() if held == "trained" else ()
        self._weights = {name: weight.detach().clone() for name, weight in kept}
        self.restore()

    @property
    def is_packed(self) -> bool:
        """Whether texts are computed end to end; for models with an attention of their own they are padded."""
        return self._first_position is not None

    @property
    def body(self) -> nn.Module:
        """The network without its language-model head."""
        body: nn.Module = self.network.base_model
        return body

    @property
    def first_position(self) -> int:
        """Where it begins to count."""
        return self._first_position or 0

    @contextmanager
    def usual_attention(self) -> Iterator[None]:
        """Compute with the attention that transformers has for it, which takes texts in rows and a mask."""
        packed = self.network.config._attn_implementation
        self.network.set_attn_implementation(self._usual_attention)
        try:
            yield
        finally:
            self.network.set_attn_implementation(packed)

    def as_mask(self, sees: Tensor) -> Tensor:
        """A mask as the usual attention takes it, from True where a query sees a key; (num_texts, 1, queries, keys)."""
        if self._usual_attention == "sdpa":
            return sees
        return torch.zeros(sees.shape, device=sees.device).masked_fill(~sees, torch.finfo(torch.float32).min)

    def limit(self, wanted: int) -> int:
        """Tokens of a text that are read: as many as wanted, or as the model is made for."""
        return context_limit(self.tokenizer, self.folder, wanted, self.first_position)

    def copy(self) -> LanguageModel:
        """Another one, whose training leaves this one alone; weights that are never trained are the same ones."""
        other = copy.copy(self)
        shared = self.network.parameters() if self.held != "trained" else ()
        other.network = copy.deepcopy(self.network, {id(weight): weight for weight in shared})
        other.micro_batch = MicroBatch()
        return other

    def add_adapters(self, rank: int, alpha: int, dropout: float, seed: int) -> None:
        """Put fresh low-rank adapters at the layers' matrices, train only them (Hu et al. 2021, arXiv 2106.09685)."""
        torch.manual_seed(seed)
        put_adapters(self.body, rank, alpha, dropout)
        for name, weight in self.network.named_parameters():
            weight.requires_grad_(MARK in name)
            if MARK in name:
                weight.data = weight.data.to(self.device)
        if self.is_packed:
            replace_dropout(self.network)

    @torch.no_grad()
    def restore(self) -> None:
        """Go back to the weights that were loaded, without adapters."""
        remove_adapters(self.network)
        set_checkpointing(self.network, False)
        for name, weight in self.network.named_parameters():
            weight.grad = None
            weight.requires_grad_(self.held == "trained")
            if self.held == "trained":
                weight.copy_(self._weights[name])

    def checkpoint_gradients(self, wanted: bool | None) -> None:
        """Compute layers again in the backward pass, for less memory; None for where there is a GPU.

        Raises
        ------
        DataError
            Where it is wanted, and the model's layers do not know how.
        """
        if wanted is None:
            wanted = self.device.type == "cuda"
        elif wanted and not set_checkpointing(self.network, wanted):
            raise DataError(
                f"{self.folder}: its layers know no gradient checkpointing; write gradient_checkpointing: false"
            )
        set_checkpointing(self.network, wanted)

    def hidden(self, part: Part) -> Tensor:
        """Last hidden states of a part's tokens, those that are shared first; (num_placed, hidden_size)."""
        hidden: Tensor = self.body(**self._inputs(part)).last_hidden_state
        return self._real(hidden, part)

    def logits(self, part: Part, places: Tensor) -> Tensor:
        """What the language-model head says at some of a part's tokens; (len(places), vocabulary)."""

        def choose(module: nn.Module, arguments: Any, output: Any) -> Any:
            output.last_hidden_state = self._real(output.last_hidden_state, part)[places][None]
            return output

        with self.body.register_forward_hook(choose):
            logits: Tensor = self.network(**self._inputs(part)).logits[0]
        return logits

    def loss(self, part: Part, places: Tensor, targets: Tensor, counts: Tensor | None = None) -> Tensor:
        """Sum of the cross entropies of what should be said at some of a part's tokens, each once or `counts` times."""
        if not self._has_linear_head:
            losses = cross_entropy(self.logits(part, places).float(), targets, reduction="none")
            return (losses if counts is None else losses * counts).sum()
        head = self.network.get_output_embeddings()
        with doing(head, lambda hidden: hidden):
            hidden = self.logits(part, places)
        return summed_loss(head, hidden, targets, counts)

    def log_probabilities(self, part: Part, places: Tensor, targets: Tensor) -> Tensor:
        """Natural logarithms of the probabilities of what might be said at some of a part's tokens; (len(places),)."""
        if not self._has_linear_head:
            return -cross_entropy(self.logits(part, places).float(), targets, reduction="none")
        head = self.network.get_output_embeddings()
        with doing(head, lambda hidden: hidden):
            hidden = self.logits(part, places)
        return log_probabilities(head, hidden, targets)

    def _inputs(self, part: Part) -> dict[str, Tensor]:
        if self._first_position is not None:
            tokens = (
                {"input_ids": part.ids[None]} if self.words is None else {"inputs_embeds": self.words(part.ids)[None]}
            )
            return {**tokens, "position_ids": part.positions[None] + self._first_position}
        width = max(part.lengths)
        ids = torch.zeros(len(part.lengths) * width, dtype=torch.long, device=self.device)
        ids[part.padded_places] = part.ids
        real = torch.zeros_like(ids)
        real[part.padded_places] = 1
        return {"input_ids": ids.view(-1, width), "attention_mask": real.view(-1, width)}

    def _real(self, hidden: Tensor, part: Part) -> Tensor:
        """Hidden states without padding; (num_tokens, size)."""
        return hidden.squeeze(0) if self.is_packed else hidden.flatten(0, 1)[part.padded_places]

    @torch.no_grad()
    def _choose_layout(self) -> None:
        """Find out how several texts are computed at once so that each gives what it gives alone.

        Whether a model takes its attention from the registry and its positions from its caller is not written anywhere,
        so it is tried: end to end with positions from 0, or from behind the padding token's as RoBERTa has them, else
        padded.
        """
        self.network.eval()
        self.network.config.use_cache = False
        end = self.network.config.vocab_size
        longest = self.limit(LONG_PROBE) - 8  # RoBERTa has less room than its configuration says
        step = Step([[token % end for token in range(7, 7 + length)] for length in (3, 5, longest)])
        (part,) = step.parts(3, self.device)
        alone = [part.ids[None, start:stop] for start, stop in part.spans]
        hidden = torch.cat([self.body(ids).last_hidden_state[0] for ids in alone])
        logits = torch.cat([self.network(ids).logits[0] for ids in alone])
        self.hidden_size = hidden.shape[-1]
        if self.kind == "causal":
            self._check_causality(alone[-1])
        usual = self._usual_attention = self.network.config._attn_implementation
        for first in (0, (getattr(self.network.config, "pad_token_id", None) or 0) + 1, None):
            self._first_position = first
            self.network.set_attn_implementation(usual if first is None else attention.NAME)
            if self._gives(part, hidden, logits):
                break
        else:
            raise DataError(
                f"{self.folder}: this {self.kind} language model computes something else where texts are computed "
                "together, and one by one is not supported; choose another model"
            )
        self._has_linear_head = self._ends_in_its_head(part)
        if self.is_packed:
            replace_dropout(self.network)

    def _ends_in_its_head(self, part: Part) -> bool:
        """Whether a linear layer is the last that happens to scores: some models scale or cap them."""
        head = self.network.get_output_embeddings()
        if type(head) is not nn.Linear:
            return False
        places = torch.arange(0, len(part.ids), 2, device=self.device)
        scores = torch.linspace(-50, 50, head.out_features, device=self.device).expand(len(places), -1)
        with computing(part, 0, "fp32"), doing(head, lambda _: scores[None]):
            said = self.logits(part, places)
        if not torch.equal(said, scores):
            return False
        try:
            with computing(part, 0, "fp32"), doing(head, lambda hidden: hidden):
                return self.logits(part, places).shape == (len(places), head.in_features)
        except RuntimeError:
            return False  # something behind the head goes by the number of words

    def _gives(self, part: Part, hidden: Tensor, logits: Tensor) -> bool:
        """Whether a part gives these numbers in the layout chosen."""
        places = torch.arange(0, len(hidden), 2, device=self.device)
        try:
            with computing(part, 0, "fp32"):
                ours = self.hidden(part)
            with computing(part, 0, "fp32"):
                said = self.logits(part, places)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            return False  # a layout that the model has no notion of
        return _close(ours, hidden, self.tolerance) and _close(said, logits[places], self.tolerance)

    def _check_causality(self, ids: Tensor) -> None:
        other = ids.clone()
        other[0, -1] = ids[0, 0]
        before, after = (self.body(tokens).last_hidden_state[0, :-1] for tokens in (ids, other))
        if (before - after).abs().max() > ROUNDING * before.abs().max():
            raise DataError(
                f"{self.folder}: its configuration says that it is a causal language model, but it sees the tokens "
                "behind; choose another model, or correct `architectures` or `is_decoder` in its config.json"
            )


def _close(one: Tensor, other: Tensor, tolerance: float) -> bool:
    scale = max(1.0, other.abs().max().item())
    return one.shape == other.shape and (one - other).abs().max().item() < tolerance * scale


@contextmanager
def doing(layer: nn.Module, function: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Have a layer do something else."""
    layer.forward = function
    try:
        yield
    finally:
        del layer.forward


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from printing what a user of peekbench can do nothing about."""
    from transformers.utils import logging as untyped

    logging: Any = untyped
    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()


class Lease:
    """A model at the disposal of one fit, and of the predictor that the fit returns."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model


_Key: TypeAlias = tuple[ModelFolder, torch.device, Held]
_idle: dict[_Key, list[LanguageModel]] = {}
_first: dict[_Key, LanguageModel] = {}


def borrow(folder: ModelFolder, device: torch.device, held: Held = "trained") -> Lease:
    """A model with the weights of its folder, for as long as the loan is referred to.

    A worker that fits one model after the other gets the same one again and again. Who keeps a predictor while fitting
    the next one gets another copy, of all but weights that are never trained.
    """
    key = (folder, device, held)
    if key not in _first:
        _first[key] = LanguageModel(folder.path, device, held)
        _idle[key] = [_first[key]]
    model = _idle[key].pop() if _idle[key] else _first[key].copy()
    model.restore()
    model.micro_batch = MicroBatch()  # a fit's numbers do not depend on what did not fit into memory before it
    loan = Lease(model)
    weakref.finalize(loan, _idle[key].append, model)
    return loan
