"""TSDAE, a denoising auto-encoder (Wang et al. 2021, https://arxiv.org/abs/2104.06979).

Some words of each text are deleted, the rest is encoded, and a decoder reconstructs the text from the embedding.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from peekbench import DataError, Inputs
from peekbench_embedding.options import TsdaeTraining
from peekbench_embedding.trained_encoder import SentenceEncoder
from peekbench_lm.attention import ATTENTION_NAME
from peekbench_lm.devices import to_device
from peekbench_lm.forward_context import forward_context, replace_dropout
from peekbench_lm.head import summed_loss
from peekbench_lm.language_model import patched_forward
from peekbench_lm.layout import Part, Step
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import Batch, Epochs, TrainingResult, train

CROSS_ATTENTION = "crossattention."


class Decoder:
    """Decoder with the weights of an encoder.

    Parameters
    ----------
    encoder
        Encoder whose weights the decoder shares.
    seed
        Seed of the new weights.

    Raises
    ------
    DataError
        If the architecture of the encoder has no decoder with cross-attention.
    """

    def __init__(self, encoder: SentenceEncoder, seed: int) -> None:
        self._encoder = encoder
        if not encoder.is_packed:
            raise _no_decoder(encoder)
        config = copy.deepcopy(encoder.network.config)
        config.is_decoder = config.add_cross_attention = True
        config.use_cache = False
        torch.manual_seed(seed)
        try:
            with quiet_transformers():
                network: Any = AutoModelForCausalLM.from_pretrained(
                    encoder.folder,
                    config=config,
                    dtype=torch.float32,
                    attn_implementation=ATTENTION_NAME,
                    use_safetensors=True,
                    local_files_only=True,
                    trust_remote_code=False,
                )
        except (OSError, ValueError) as error:
            raise _no_decoder(encoder) from error
        self.network = network.to(encoder.device)
        """Network of transformers, with its language-model head."""
        if not any(CROSS_ATTENTION in name for name, _ in network.named_parameters()):
            raise _no_decoder(encoder)
        self.head: nn.Linear = network.get_output_embeddings()
        """Last layer of the head."""
        is_tied = self.head.weight is network.get_input_embeddings().weight
        _share_weights(encoder.network, network.base_model)
        if is_tied:
            self.head.weight = encoder.network.get_input_embeddings().weight
        for name, weight in network.named_parameters():
            # Attention to a single vector has weight 1, whatever queries and keys are: their gradient is zero.
            if CROSS_ATTENTION in name and (".query." in name or ".key." in name):
                weight.requires_grad_(False)
        replace_dropout(network)

    def loss(self, part: Part, embeddings: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of the cross-entropies of the next tokens. Call it inside `forward_context`.

        Parameters
        ----------
        part
            Texts without their last tokens.
        embeddings
            Embeddings of the texts of the part; shape (num_texts, hidden_size).
        targets
            Next token of each token of the part; shape (num_tokens,).
        """
        with patched_forward(self.head, lambda hidden: hidden):
            inputs = self._encoder.network_inputs(part)
            hidden = self.network(**inputs, encoder_hidden_states=embeddings[None]).logits[0]
        return summed_loss(self.head, hidden[: len(targets)], targets)


def _share_weights(encoder: nn.Module, decoder: nn.Module) -> None:
    """Replace each weight of the decoder by the weight of the encoder with the same name."""
    weights = dict(encoder.named_parameters())
    for module_name, module in decoder.named_modules():
        for name in list(module._parameters):
            if (weight := weights.get(f"{module_name}.{name}")) is not None:
                module._parameters[name] = weight


def _no_decoder(encoder: SentenceEncoder) -> DataError:
    return DataError(
        f"{encoder.folder}: transformers has no decoder with cross-attention for the architecture "
        f"{encoder.network.config.model_type}; choose a model of type bert, roberta or xlm-roberta"
    )


@dataclass(frozen=True, slots=True)
class Words:
    """Tokens of a text."""

    ids: Sequence[int]
    """Token ids."""
    words: Sequence[int | None]
    """Number of the word that contains the token; None for special tokens."""

    def delete(self, probability: float, generator: np.random.Generator) -> list[int]:
        """Return the token ids without the words that are deleted. One word always remains.

        Parameters
        ----------
        probability
            Probability that a word is deleted.
        generator
            Source of random numbers.
        """
        numbers = sorted({word for word in self.words if word is not None})
        if not numbers:
            return list(self.ids)
        draws = generator.random(len(numbers))
        is_kept = draws >= probability
        is_kept[draws.argmax()] = True
        kept = {None, *(word for word, keep in zip(numbers, is_kept, strict=True) if keep)}
        return [token for token, word in zip(self.ids, self.words, strict=True) if word in kept]


def split_words(encoder: SentenceEncoder, texts: Inputs, prompt: str | None, limit: int) -> list[Words]:
    """Return the tokens of texts with the words that the tokenizer splits them into.

    Parameters
    ----------
    encoder
        Encoder with the tokenizer.
    texts
        Texts.
    prompt
        Text in front of each of them; None for the prompt of the model.
    limit
        Maximum number of tokens of each text.

    Raises
    ------
    DataError
        If the tokenizer does not tell which tokens belong to a word.
    """
    if not encoder.tokenizer.is_fast:
        raise DataError(
            f"{encoder.folder}: the tokenizer does not tell which tokens belong to a word; give a model with a fast "
            "tokenizer (`tokenizer.json`)"
        )
    encoded = encoder.tokenize(texts, prompt, limit)
    return [Words(ids, encoded.word_ids(row)) for row, ids in enumerate(encoded["input_ids"])]


def make_batch(
    encoder: SentenceEncoder, decoder: Decoder, texts: Sequence[Words], noisy: Sequence[Sequence[int]], seed: int
) -> Batch:
    """Return the batch of some texts.

    Parameters
    ----------
    encoder
        Encoder to train.
    decoder
        Decoder that reconstructs the texts.
    texts
        Texts to reconstruct, of at least two tokens each.
    noisy
        Token ids of the texts without the deleted words.
    seed
        Seed of the dropout masks of the encoder.
    """
    sources, step = Step(noisy), Step([text.ids[:-1] for text in texts])
    targets = torch.tensor([token for row in step.order for token in texts[row].ids[1:]])  # (num_packed,)
    positions = torch.from_numpy(np.argsort(sources.order)[step.order])  # of the texts of the step in the sources

    def loss(part: Part) -> Tensor:
        (source,) = sources.parts(len(noisy), encoder.device)
        with forward_context(source, seed, encoder.precision):
            embeddings = encoder.embed(source)  # (num_texts, size)
        order, next_tokens = to_device(positions, encoder.device), to_device(targets, encoder.device)
        return decoder.loss(part, embeddings[order], next_tokens)

    return Batch(step, len(targets), loss, is_whole=True)


def train_tsdae(encoder: SentenceEncoder, texts: Sequence[Words], options: TsdaeTraining, seed: int) -> TrainingResult:
    """Train an encoder on unlabeled texts.

    Parameters
    ----------
    encoder
        Encoder to train.
    texts
        Texts. Those of a single token are left out, because nothing follows it.
    options
        Hyperparameters.
    seed
        Seed of order, deleted words, dropout and new weights.

    Raises
    ------
    DataError
        If the architecture of the encoder has no decoder with cross-attention.
    """
    decoder = Decoder(encoder, seed_for(seed, "decoder"))
    texts = [text for text in texts if len(text.ids) > 1]
    size = options.batch_size
    epochs: list[list[Batch]] = []
    for epoch in range(options.epochs):
        generator = np.random.default_rng(seed_for(seed, "epoch", epoch))
        order = generator.permutation(len(texts))
        noisy = {row: texts[row].delete(options.deletion_probability, generator) for row in order}
        epochs.append([])
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            encoder_seed = seed_for(seed, "encoder", epoch, start)
            batch = make_batch(
                encoder, decoder, [texts[row] for row in rows], [noisy[row] for row in rows], encoder_seed
            )
            epochs[-1].append(batch)
    modules = nn.ModuleList([encoder.network, encoder.modules, decoder.network])  # counts shared weights once
    recipe = options.make_recipe(options.epochs)
    return train(encoder, [modules], Epochs.of(epochs), recipe, seed_for(seed, "dropout"))
