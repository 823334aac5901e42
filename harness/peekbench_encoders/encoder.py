"""A sentence encoder in memory. This module imports torch; texts in the cache need it only to find a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from peekbench import DataError
from peekbench.records import FloatArray
from peekbench_encoders.provision import check_modules
from peekbench_lm.devices import deterministic
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.options import ModelFolder
from peekbench_lm.tokenizer import one_thread

LOADING_ERRORS = (OSError, ValueError, RuntimeError, LookupError, TypeError, ImportError, AttributeError)
"""Errors of sentence-transformers and transformers if files are missing or do not match."""


@lru_cache(maxsize=1)
def load_encoder(folder: ModelFolder, context_length: int, device: str) -> Any:
    """Return a sentence encoder in fp32. The process keeps it for later calls.

    Parameters
    ----------
    folder
        Files of the model, in the format of sentence-transformers or transformers. Changed files are loaded again.
    context_length
        Maximum number of tokens of each text.
    device
        Type of the device.

    Raises
    ------
    DataError
        If the model cannot be loaded without running its own code.
    """
    model = read_encoder(folder.path, device)
    model.max_seq_length = min(context_length, model.max_seq_length or context_length)
    return model


def read_encoder(folder: Path, device: str) -> Any:
    """Return a new sentence encoder in fp32.

    Parameters
    ----------
    folder
        Folder of the model, in the format of sentence-transformers or transformers.
    device
        Type of the device.

    Raises
    ------
    DataError
        If the model cannot be loaded without running its own code.
    """
    check_modules(folder)
    try:
        with quiet_transformers():
            model = SentenceTransformer(
                str(folder),
                device=device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"dtype": torch.float32, "use_safetensors": True},
            )
    except LOADING_ERRORS as error:
        raise DataError(
            f"{folder}: sentence-transformers cannot load this model: {error}; choose a model that it saved, with "
            "weights in safetensors and without code of its own"
        ) from error
    return model.eval()


def encode_texts(model: Any, texts: Sequence[str], prompt: str | None, threads: int) -> FloatArray:
    """Return the embeddings of texts, each computed alone, so that the others do not affect how it is rounded.

    Parameters
    ----------
    model
        Result of `load_encoder`.
    texts
        Texts to encode.
    prompt
        Text in front of each of them; None for the prompt of the model.
    threads
        Number of CPU threads.

    Returns
    -------
    ndarray
        (n, n_features), float32.
    """
    with deterministic(model.device, threads), one_thread():
        vectors = model.encode(list(texts), prompt=prompt, batch_size=1, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float32)
