"""A made-up task to prompt for, and tokenizers of the kinds that there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from small_models import SENTENCES
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from peekbench import SourceRef, Task, render_prompt

WHO = ("engine", "rabbit", "minister", "orchestra")
NAMES = ("an engine", "an engine that plays", "a rabbit", "law", "old law\nor new", "the broken pump")
"""Names that begin others, begin alike, or have several lines."""
INSTRUCTION = "Answer with what acts."


def task_of(names: Sequence[str] = NAMES, instruction: str = INSTRUCTION) -> Task:
    return Task("acting", "classification", tuple(names), instruction, SourceRef("toy.words", {}, Path()))


def byte_level() -> Any:
    """As GPT-2's: a word's space belongs to it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _trained(tokenizer, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False))


def sentence_piece() -> Any:
    """As Llama's and Mistral's first ones: no words, spaces written as a letter, a token in front.

    Trained so that a colon goes with the space behind it.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    tokenizer.train_from_iterator([*" ".join(SENTENCES).split(), *([f": {name}" for name in NAMES] * 400)], trainer)
    made: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer)  # type: ignore[no-untyped-call]
    made.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]
    )
    made.bos_token = "<s>"
    return made


def unigram() -> Any:
    """SentencePiece's other kind."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    return _trained(tokenizer, trainers.UnigramTrainer(vocab_size=300, unk_token="<unk>", special_tokens=["<unk>"]))


def _trained(tokenizer: Any, trainer: Any) -> Any:
    tokenizer.train_from_iterator([render_prompt(text, NAMES, INSTRUCTION) for text in SENTENCES], trainer)
    wrap: Any = PreTrainedTokenizerFast
    return wrap(tokenizer_object=tokenizer)


TOKENIZERS = {"byte_level": byte_level, "sentence_piece": sentence_piece, "unigram": unigram}
