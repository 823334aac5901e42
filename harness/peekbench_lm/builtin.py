"""Language models without a download: small ones, trained once on this machine, on docstrings of installed packages."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peekbench import DataError
from peekbench_lm import corpus
from peekbench_lm.names import Kind

BUILTIN = "builtin:"
VOCABULARY = 8192
PARAGRAPHS = 30_000  # as many as are trained on in two or three minutes
HELD_OUT = 1000  # paragraphs that are not trained on
BETWEEN = "\n\n"  # paragraphs that are read together
EPOCHS = 1
LAYERS, WIDTH, HEADS = 2, 128, 2
LEARNING_RATE = 2e-3
MASK_PROBABILITY = 0.15
THREADS = 2  # a fixed number, because sums are rounded by it


@dataclass(frozen=True, slots=True)
class Nano:
    """What tells a built-in model from the others."""

    kind: Kind
    num_tokens: int = 128
    """That it reads at once."""
    batch_size: int = 64
    are_paragraphs_joined: bool = False
    """Whether neighboring paragraphs are one text, so that all positions are trained."""


NANOS = {
    "bert-nano": Nano("masked"),
    "gpt2-nano": Nano("causal"),
    "gpt2-nano-512": Nano("causal", 512, batch_size=4, are_paragraphs_joined=True),  # for prompts with examples
}


def build_model(name: str, cache: Path) -> Path:
    """The folder of a built-in model, which takes a few minutes to make the first time.

    Raises
    ------
    DataError
        Where there is no such model.
    """
    if name not in NANOS:
        raise DataError(f"model {BUILTIN}{name}: there are {', '.join(BUILTIN + known for known in NANOS)}")
    # Whatever changes here, or in the packages' sources, makes another model.
    recipe = [Path(__file__).read_text(encoding="utf-8"), inspect.getsource(corpus), corpus.fingerprint()]
    folder = cache / "models" / f"{name}-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:16]}"
    if (folder / "made.json").is_file():
        return folder
    from filelock import FileLock

    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "made.json").is_file():
            with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
                making = Path(temporary) / name
                made = _make(NANOS[name], making)
                (making / "made.json").write_text(json.dumps(made, indent=1), encoding="utf-8")
                making.rename(folder)  # in one step: nobody ever finds half a model
    return folder


def _make(nano: Nano, folder: Path) -> dict[str, Any]:
    """Train a model and leave its files in a folder; what should be known of it."""
    import numpy as np
    import torch

    from peekbench_lm.devices import reproducibly
    from peekbench_lm.model import LanguageModel, quiet
    from peekbench_lm.pretraining import mean_loss, pretrain
    from peekbench_lm.tokens import encode
    from peekbench_lm.training import Recipe

    started = time.perf_counter()
    texts = corpus.paragraphs()
    order = np.random.default_rng(0).permutation(len(texts))
    parts = np.split(order, [HELD_OUT, HELD_OUT + PARAGRAPHS])
    held_out, trained_on = ([texts[row] for row in rows] for rows in parts[:2])
    kind, num_tokens, num_paragraphs = nano.kind, nano.num_tokens, len(trained_on)
    device = torch.device("cpu")
    with reproducibly(device, THREADS), quiet():
        torch.manual_seed(0)
        tokenizer = train_tokenizer(kind, trained_on, VOCABULARY, num_tokens)
        tokenizer.save_pretrained(folder)
        _network(kind, tokenizer, num_tokens).save_pretrained(folder)
        model = LanguageModel(folder, device)
        if nano.are_paragraphs_joined:
            held_out, trained_on = ([*_joined([texts[row] for row in sorted(rows)], num_tokens)] for rows in parts[:2])
        recipe = Recipe(EPOCHS, nano.batch_size, LEARNING_RATE, "linear", 0.01, 1.0, warmup=0.05)
        trained = pretrain(model, encode(tokenizer, trained_on, num_tokens), recipe, MASK_PROBABILITY, seed=0)
        loss = mean_loss(model, encode(tokenizer, held_out, num_tokens), MASK_PROBABILITY, seed=0)
        model.network.save_pretrained(folder)
    return {
        "corpus": {distribution: corpus.version(distribution) for distribution in sorted(corpus.PACKAGES)},
        "paragraphs": num_paragraphs,
        "tokens": trained.num_tokens // EPOCHS,
        "epochs": EPOCHS,
        "vocabulary": len(tokenizer),
        "held_out_loss": round(loss, 3),
        "loss_of_guessing": round(math.log(len(tokenizer)), 3),
        "seconds": round(time.perf_counter() - started),
    }


def _joined(paragraphs: Sequence[str], num_tokens: int) -> Iterator[str]:
    """Neighboring paragraphs in texts of about as many tokens, of which a word is hardly ever less than one."""
    text: list[str] = []
    for paragraph in paragraphs:
        text.append(paragraph)
        if sum(len(part.split()) for part in text) >= num_tokens:
            yield BETWEEN.join(text)
            text = []


def train_tokenizer(kind: Kind, texts: Sequence[str], vocabulary: int, num_tokens: int = 128) -> Any:
    """A tokenizer in the way of BERT, or of GPT-2, with a vocabulary of its own."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    wrap: Any = PreTrainedTokenizerFast

    if kind == "causal":
        end = "<|endoftext|>"
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=[end], initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
        return wrap(
            tokenizer_object=tokenizer, bos_token=end, eos_token=end, unk_token=end, model_max_length=num_tokens
        )
    special = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    tokenizer = Tokenizer(models.WordPiece(unk_token=special["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    word_trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary, special_tokens=list(special.values()), show_progress=False
    )
    tokenizer.train_from_iterator(texts, word_trainer)
    ends: list[Any] = [(token, tokenizer.token_to_id(token)) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return wrap(tokenizer_object=tokenizer, model_max_length=num_tokens, **special)


def _network(kind: Kind, tokenizer: Any, num_tokens: int) -> Any:
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

    if kind == "causal":
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=len(tokenizer), n_positions=num_tokens, n_embd=WIDTH, n_layer=LAYERS,
                n_head=HEADS, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
            )
        )  # fmt: skip
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer), max_position_embeddings=num_tokens, hidden_size=WIDTH,
            num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4 * WIDTH,
            type_vocab_size=1, pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
