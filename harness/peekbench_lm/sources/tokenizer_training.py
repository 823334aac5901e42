"""Training of tokenizers for built-in models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from peekbench_lm.types import Kind

END_OF_TEXT = "<|endoftext|>"
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def train_tokenizer(kind: Kind, texts: Sequence[str], vocabulary_size: int, context_length: int = 128) -> Any:
    """Train a tokenizer of the type of BERT (masked) or GPT-2 (causal).

    Parameters
    ----------
    kind
        Training objective of the model.
    texts
        Training texts.
    vocabulary_size
        Maximum number of different tokens.
    context_length
        Maximum number of tokens of a text.
    """
    if kind == "causal":
        return _train_byte_pairs(texts, vocabulary_size, context_length)
    return _train_word_pieces(texts, vocabulary_size, context_length)


def _train_byte_pairs(texts: Sequence[str], vocabulary_size: int, context_length: int) -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    special = {"bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT, "unk_token": END_OF_TEXT}
    return _wrap(tokenizer, context_length, special)


def _train_word_pieces(texts: Sequence[str], vocabulary_size: int, context_length: int) -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL_TOKENS["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size, special_tokens=list(SPECIAL_TOKENS.values()), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    ends: list[Any] = [(token, tokenizer.token_to_id(token)) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return _wrap(tokenizer, context_length, SPECIAL_TOKENS)


def _wrap(tokenizer: Tokenizer, context_length: int, special: dict[str, str]) -> Any:
    """Return a tokenizer of transformers."""
    wrap: Any = PreTrainedTokenizerFast
    return wrap(tokenizer_object=tokenizer, model_max_length=context_length, **special)
