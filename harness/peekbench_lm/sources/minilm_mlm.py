"""A masked language model from the sentence encoder of `minilm`, which has no language-model head.

The head is that of BERT. Its decoder is the word embedding of the encoder, and its bias starts at the logarithms of the
word frequencies, so that training starts from the loss of these frequencies. First only the head is trained, then
everything: an encoder behind an untrained head would lose what it has learned. For the same reason, the learning rate
is low and the paragraphs are few: with five times this rate and all paragraphs, the loss is lower by a third, but
linear classifiers of the embeddings lose a quarter of their accuracy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertForMaskedLM

from peekbench.records import FloatArray
from peekbench_lm.devices import deterministic
from peekbench_lm.models.language_model import LanguageModel
from peekbench_lm.models.loading import quiet_transformers
from peekbench_lm.models.tokens import encode, load_tokenizer
from peekbench_lm.recipe import Recipe
from peekbench_lm.sources import corpus
from peekbench_lm.sources.progress import training_progress
from peekbench_lm.training.pretraining import mean_loss, pretrain

NUM_HELD_OUT = 1000  # paragraphs for evaluation
NUM_FOR_HEAD = 8000  # paragraphs that first train the head alone
NUM_FOR_ALL = 8000  # paragraphs that then train all weights
CONTEXT_LENGTH = 128  # tokens per paragraph; 1% of the paragraphs are longer
MASK_PROBABILITY = 0.15
HEAD_RECIPE = Recipe(1, 32, 2e-3, "linear", 0.01, 1.0, warmup=0.1)
RECIPE = Recipe(1, 16, 1e-4, "linear", 0.01, 1.0, warmup=0.1)
THREADS = 2  # fixed, because the number of threads affects rounding


def train_minilm_mlm(name: str, folder: Path, source: Path) -> dict[str, Any]:
    """Train a language-model head and the encoder, and save the model in the format of transformers.

    Parameters
    ----------
    name
        Name of the model, for the display of the progress.
    folder
        Folder for the files.
    source
        Folder of the encoder.

    Returns
    -------
    dict
        Description of the model: origin, versions of the packages, numbers of paragraphs and tokens, losses on held-out
        paragraphs in nats per masked token, and the duration in seconds.
    """
    started = time.perf_counter()
    tokenizer = load_tokenizer(source)
    held_out, training = split_paragraphs(corpus.load_paragraphs())
    held_out_texts, texts = (encode(tokenizer, part, CONTEXT_LENGTH) for part in (held_out, training))
    stages = [(HEAD_RECIPE, texts[:NUM_FOR_HEAD]), (RECIPE, texts[:NUM_FOR_ALL])]
    num_steps = sum(recipe.epochs * -(-len(part) // recipe.batch_size) for recipe, part in stages)
    device = torch.device("cpu")
    with deterministic(device, THREADS), quiet_transformers(), training_progress(name, num_steps) as advance:
        torch.manual_seed(0)
        tokenizer.save_pretrained(folder)
        _add_head(source, unigram_log_probabilities(texts, tokenizer)).save_pretrained(folder)
        model = LanguageModel(folder, device)
        model.precision = "bf16"
        first_loss = mean_loss(model, held_out_texts, MASK_PROBABILITY, seed=0)
        for stage, (recipe, part) in enumerate(stages):
            for weight in model.body.parameters():
                weight.requires_grad_(recipe is not HEAD_RECIPE)
            result = pretrain(model, part, recipe, MASK_PROBABILITY, seed=stage, on_step=advance)
        loss = mean_loss(model, held_out_texts, MASK_PROBABILITY, seed=0)
        model.network.save_pretrained(folder)
    return {
        "original": "sentence-transformers/all-MiniLM-L6-v2",
        "license": "Apache-2.0",
        "corpus": {distribution: corpus.version(distribution) for distribution in sorted(corpus.PACKAGES)},
        "paragraphs": len(texts[:NUM_FOR_ALL]),
        "tokens": result.num_tokens // RECIPE.epochs,
        "epochs": RECIPE.epochs,
        "held_out_loss": round(loss, 3),
        "untrained_loss": round(first_loss, 3),
        "seconds": round(time.perf_counter() - started),
    }


def split_paragraphs(paragraphs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the held-out paragraphs and the others.

    Parameters
    ----------
    paragraphs
        All paragraphs of the corpus.
    """
    held_out_rows, rows = corpus.split(len(paragraphs), NUM_HELD_OUT)
    return [paragraphs[row] for row in held_out_rows], [paragraphs[row] for row in rows]


def unigram_log_probabilities(texts: Sequence[Sequence[int]], tokenizer: Any) -> FloatArray:
    """Return the log-probability of each token from its frequency in texts, with one added to each count.

    Parameters
    ----------
    texts
        Token ids of each text.
    tokenizer
        Tokenizer of the model. Its special tokens, which are never predicted, count as absent.

    Returns
    -------
    numpy.ndarray
        Natural logarithms; shape (vocabulary,).
    """
    counts = np.bincount(np.concatenate([np.asarray(ids) for ids in texts]), minlength=len(tokenizer)).astype(float)
    counts[tokenizer.all_special_ids] = 0
    probabilities: FloatArray = np.log((counts + 1) / (counts + 1).sum())
    return probabilities


def _add_head(source: Path, log_probabilities: FloatArray) -> Any:
    """Return the encoder with an untrained head, whose bias gives each token its frequency."""
    network = BertForMaskedLM.from_pretrained(source, local_files_only=True, use_safetensors=True)
    head = network.cls.predictions
    with torch.no_grad():
        head.bias.copy_(torch.from_numpy(log_probabilities))
        head.transform.LayerNorm.weight.fill_(0.5)  # the decoder contributes little at first
    return network
