"""A decoder that reconstructs a text from its embedding and shares the weights of the encoder.

As in ``DenoisingAutoEncoderLoss(tie_encoder_decoder=True)`` of sentence-transformers: the decoder has the layers of the
encoder with causal attention. Each layer also attends to the embedding, with new weights. The language-model head is
that of the checkpoint, if it has one. Otherwise it is new, except its last layer, which is the word embedding.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from peekbench import DataError
from peekbench_embedding.training.encoder import SentenceEncoder
from peekbench_lm.attention import ATTENTION_NAME
from peekbench_lm.forward_context import replace_dropout
from peekbench_lm.language_model import patched_forward, summed_loss
from peekbench_lm.layout import Part
from peekbench_lm.loading import quiet_transformers

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
