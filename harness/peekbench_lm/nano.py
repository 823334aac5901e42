"""The nano models: two small layers, trained from random weights on the docstrings of installed packages."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from peekbench_lm import corpus
from peekbench_lm.builtin_models import BUILTIN_PREFIX, TrainingLines
from peekbench_lm.devices import deterministic
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.options import Kind, Recipe
from peekbench_lm.pretraining import mean_loss, pretrain
from peekbench_lm.tokenizer import encode

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


VOCABULARY_SIZE = 8192
NUM_PARAGRAPHS = 30_000  # training takes two or three minutes
NUM_HELD_OUT = 1000  # paragraphs for evaluation
SEPARATOR = "\n\n"  # between joined paragraphs
EPOCHS = 1
NUM_LAYERS, WIDTH, NUM_HEADS = 2, 128, 2
LEARNING_RATE = 2e-3
MASK_PROBABILITY = 0.15
THREADS = 2  # fixed, because the number of threads affects rounding


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Options in which the nano models differ."""

    kind: Kind
    """Training objective."""
    context_length: int = 128
    """Number of tokens that the model reads at once."""
    batch_size: int = 64
    """Texts per optimizer step."""
    joins_paragraphs: bool = False
    """Whether consecutive paragraphs form one text, so that all positions are trained."""


TRAINING_OPTIONS = {
    "bert-nano": TrainingOptions("masked"),
    "gpt2-nano": TrainingOptions("causal"),
    "gpt2-nano-512": TrainingOptions("causal", 512, batch_size=4, joins_paragraphs=True),  # for few-shot prompts
}
"""Options of each nano model."""


def train_nano_model(name: str, folder: Path, source: Path | None = None) -> dict[str, Any]:
    """Train a nano model and save it in the format of transformers.

    Parameters
    ----------
    name
        Name of the model.
    folder
        Folder for the files.
    source
        Not used; the weights start at random.

    Returns
    -------
    dict
        Description of the model: versions of the packages, numbers of paragraphs and tokens, losses in nats per token,
        and the duration in seconds.
    """
    options = TRAINING_OPTIONS[name]
    started = time.perf_counter()
    texts = corpus.load_paragraphs()
    held_out_rows, rows = corpus.split(len(texts), NUM_HELD_OUT)
    parts = held_out_rows, rows[:NUM_PARAGRAPHS]
    held_out, training = ([texts[row] for row in rows] for rows in parts)
    kind, context_length, num_paragraphs = options.kind, options.context_length, len(training)
    device = torch.device("cpu")
    with deterministic(device, THREADS), quiet_transformers():
        torch.manual_seed(0)
        tokenizer = train_tokenizer(kind, training, VOCABULARY_SIZE, context_length)
        tokenizer.save_pretrained(folder)
        _make_network(kind, tokenizer, context_length).save_pretrained(folder)
        model = LanguageModel(folder, device)
        if options.joins_paragraphs:
            held_out, training = (
                [*_join_paragraphs([texts[row] for row in sorted(rows)], context_length)] for rows in parts
            )
        recipe = Recipe(EPOCHS, options.batch_size, LEARNING_RATE, "linear", 0.01, 1.0, warmup=0.05)
        encoded, report = encode(tokenizer, training, context_length), TrainingLines(BUILTIN_PREFIX + name)
        result = pretrain(model, encoded, recipe, MASK_PROBABILITY, 0, report)
        loss = mean_loss(model, encode(tokenizer, held_out, context_length), MASK_PROBABILITY, seed=0)
        model.network.save_pretrained(folder)
    return {
        "corpus": corpus.versions(),
        "paragraphs": num_paragraphs,
        "tokens": result.num_tokens // EPOCHS,
        "epochs": EPOCHS,
        "vocabulary": len(tokenizer),
        "held_out_loss": round(loss, 3),
        "uniform_guess_loss": round(math.log(len(tokenizer)), 3),
        "seconds": round(time.perf_counter() - started),
    }


def _join_paragraphs(paragraphs: Sequence[str], context_length: int) -> Iterator[str]:
    """Join consecutive paragraphs to texts of at least `context_length` words, which have about as many tokens."""
    text: list[str] = []
    for paragraph in paragraphs:
        text.append(paragraph)
        if sum(len(part.split()) for part in text) >= context_length:
            yield SEPARATOR.join(text)
            text = []


def _make_network(kind: Kind, tokenizer: Any, context_length: int) -> Any:
    """Return a network with random weights."""
    if kind == "causal":
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=len(tokenizer), n_positions=context_length, n_embd=WIDTH, n_layer=NUM_LAYERS,
                n_head=NUM_HEADS, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
            )
        )  # fmt: skip
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer), max_position_embeddings=context_length, hidden_size=WIDTH,
            num_hidden_layers=NUM_LAYERS, num_attention_heads=NUM_HEADS, intermediate_size=4 * WIDTH,
            type_vocab_size=1, pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
