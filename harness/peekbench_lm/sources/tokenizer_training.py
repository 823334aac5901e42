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
    """Train a tokenizer that is the same in each process.

    The trainer numbers the characters inside words in the order of a hash table, and these numbers decide between
    equally frequent pairs (huggingface/tokenizers issue 1794). Special tokens are numbered first, so these characters
    are passed as special tokens, and a new tokenizer, to which they are ordinary, takes over the vocabulary.
    """
    tokenizer = _make_word_pieces({})
    characters = sorted(_characters_inside_words(tokenizer, texts))
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[*SPECIAL_TOKENS.values(), *(f"##{character}" for character in characters)],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer = _make_word_pieces(tokenizer.get_vocab())
    ends: list[Any] = [(token, tokenizer.token_to_id(token)) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return _wrap(tokenizer, context_length, SPECIAL_TOKENS)


def _make_word_pieces(vocabulary: dict[str, int]) -> Tokenizer:
    """Return a tokenizer of the type of BERT with a vocabulary."""
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL_TOKENS["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _characters_inside_words(tokenizer: Tokenizer, texts: Sequence[str]) -> set[str]:
    """Return the characters that occur in a word after its first character."""
    words: set[str] = set()
    for text in texts:
        normalized = tokenizer.normalizer.normalize_str(text)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normalized))
    return {character for word in words for character in word[1:]}


def _wrap(tokenizer: Tokenizer, context_length: int, special: dict[str, str]) -> Any:
    """Return a tokenizer of transformers."""
    wrap: Any = PreTrainedTokenizerFast
    return wrap(tokenizer_object=tokenizer, model_max_length=context_length, **special)
