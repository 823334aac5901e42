"""A sentence encoder whose weights are trained with packed texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from peekbench import DataError, Inputs
from peekbench.records import FloatArray
from peekbench_embedding.options import EncoderTraining
from peekbench_encoders.encoder import encode_texts, read_encoder
from peekbench_lm.devices import to_device
from peekbench_lm.fit import ModelPool
from peekbench_lm.forward_context import forward_context
from peekbench_lm.layout import Part, Step
from peekbench_lm.network import LAYOUT_ERRORS, MAX_PROBE_LENGTH, PackedNetwork, is_close
from peekbench_lm.options import WeightMode
from peekbench_lm.seeds import seed_for
from peekbench_lm.tokenizer import one_thread
from peekbench_lm.training_loop import Batch, Epochs, TrainingResult, train

PREDICTION_BATCH_SIZE = 32  # texts; it affects embeddings only by rounding
PROBES = ("A short text.", "Another text, which has a few more words than the first one, and (2) some punctuation!")


class SentenceEncoder(PackedNetwork):
    """A network of transformers, followed by modules of sentence-transformers that turn its output into embeddings.

    Parameters
    ----------
    model
        Encoder that `read_encoder` returns.
    folder
        Folder of the model.

    Raises
    ------
    DataError
        If the encoder has no network of transformers, or a module that needs padded texts.
    """

    def __init__(self, model: Any, folder: Path) -> None:
        self.modules = nn.ModuleList(list(model)[1:])
        """Modules after the network: pooling, and often normalization or linear layers."""
        self.prompt: str = model.prompts.get(model.default_prompt_name) or ""
        """Text that the model expects in front of each input."""
        self._limit: int | None = model.max_seq_length
        network = getattr(model, "transformers_model", None)
        if network is None:
            raise DataError(f"{folder}: this encoder has no network of transformers to train; choose another model")
        self._omits_prompt = any(not getattr(module, "include_prompt", True) for module in self.modules)
        prompt = "" if self._omits_prompt else None
        expected = torch.from_numpy(encode_texts(model, PROBES, prompt, threads=1))
        super().__init__(network, model.tokenizer, folder)
        try:
            embeddings = torch.from_numpy(self.embed_texts(PROBES, prompt, MAX_PROBE_LENGTH)).float()
        except LAYOUT_ERRORS:
            embeddings = torch.empty(0)
        if not is_close(embeddings, expected, self.tolerance):
            raise DataError(
                f"{folder}: training this encoder with packed texts would not give the embeddings of "
                "sentence-transformers, because one of its modules needs padded texts; choose another model"
            )

    def _restored_weights(self) -> Iterable[tuple[str, nn.Parameter]]:
        return nn.ModuleList([self.network, self.modules]).named_parameters()

    def tokenize(self, texts: Inputs, prompt: str | None, limit: int) -> Any:
        """Return the result of the tokenizer for some texts, with special tokens.

        Parameters
        ----------
        texts
            Texts.
        prompt
            Text in front of each of them; None for the prompt of the model.
        limit
            Maximum number of tokens of each text; less if the encoder reads fewer.

        Raises
        ------
        DataError
            If there is a prompt and the pooling of the encoder omits its tokens.
        """
        front = self.prompt if prompt is None else prompt
        if front and self._omits_prompt:
            raise DataError(
                f"prompt {front!r}: the pooling of this encoder omits the prompt (`include_prompt: false`), "
                "and training with packed texts does not; set `prompt: ''`, or choose another model"
            )
        limit = self.context_limit(min(limit, self._limit or limit))
        with one_thread():
            return self.tokenizer([front + text for text in texts], truncation=True, max_length=limit)

    def embed(self, part: Part) -> Tensor:
        """Return the embeddings of the texts of a part, in fp32; shape (num_texts, size).

        Call it inside `forward_context`.
        """
        hidden = self.hidden(part).float()  # (num_tokens, hidden_size)
        texts = torch.arange(len(part.lengths)).repeat_interleave(torch.tensor(part.lengths))  # (num_tokens,)
        features: dict[str, Any] = {
            "token_embeddings": hidden[None],
            "cu_seq_lens_q": to_device(torch.tensor([0, *accumulate(part.lengths)]), self.device),
            "seq_idx": to_device(texts[None], self.device),  # otherwise pooling would wait for a GPU
        }
        with torch.autocast(self.device.type, enabled=False):
            for module in self.modules:
                features = module(features)
        embeddings: Tensor = features["sentence_embedding"]
        return embeddings

    @torch.no_grad()
    def embed_texts(self, texts: Inputs, prompt: str | None, limit: int) -> FloatArray:
        """Return the embeddings of texts with the current weights: (n, size), float64.

        Parameters
        ----------
        texts
            Texts.
        prompt
            Text in front of each of them; None for the prompt of the model.
        limit
            Maximum number of tokens of each text; less if the encoder reads fewer.
        """
        self.network.eval()
        self.modules.eval()
        ids = self.tokenize(texts, prompt, limit)["input_ids"]
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        chunks = []
        for start in range(0, len(order), PREDICTION_BATCH_SIZE):
            step = Step([ids[row] for row in order[start : start + PREDICTION_BATCH_SIZE]])  # keeps their order
            chunks.append(self.run_in_parts(step, self._embed_parts))
        embeddings = np.empty((len(ids), chunks[0].shape[1]), dtype=np.float64)
        embeddings[order] = torch.cat(chunks).double().cpu().numpy()
        return embeddings

    def _embed_parts(self, parts: Sequence[Part]) -> Tensor:
        embeddings = []
        for part in parts:
            with forward_context(part, 0, "fp32"):
                embeddings.append(self.embed(part))
        return torch.cat(embeddings)


def train_encoder(
    encoder: SentenceEncoder,
    texts: Sequence[Sequence[int]],
    batches: Sequence[Sequence[Batch]],
    options: EncoderTraining,
    seed: int,
) -> TrainingResult:
    """Train an encoder, and only the word embeddings of tokens that the texts contain.

    Parameters
    ----------
    encoder
        Encoder to train.
    texts
        Token ids of the texts of all batches.
    batches
        Batches of each epoch.
    options
        Hyperparameters.
    seed
        Seed of the fit, from which that of the dropout masks is derived.
    """
    recipe, epochs = options.make_recipe(options.epochs), Epochs.of(batches)
    modules = [encoder.network, encoder.modules]
    return train(encoder, modules, epochs, recipe, seed_for(seed, "dropout"))


def _load(folder: Path, device: torch.device, weight_mode: WeightMode) -> SentenceEncoder:
    return SentenceEncoder(read_encoder(folder, device.type), folder)


encoders = ModelPool(_load)
"""Encoders that this process has loaded for training."""
