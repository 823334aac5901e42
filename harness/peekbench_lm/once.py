"""Values of texts under the loaded weights of a model, which a process computes once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import torch

from peekbench.records import FloatArray
from peekbench_lm.network import PackedNetwork

MEMORY_LIMIT = 64 * 2**20  # bytes of values of one model
ENTRY_BYTES = 400  # of a key, an array and their place in a dictionary, without the numbers


def computes_once(model: PackedNetwork) -> bool:
    """Return whether values are remembered: on a CPU, until something is trained.

    A remembered value must not depend on other texts; otherwise results would depend on the earlier fits of a process.
    So each text is computed alone. That takes about as long on a CPU, but many times as long on a GPU.
    """
    return model.device.type == "cpu" and model.is_as_loaded


def compute_once(
    model: PackedNetwork,
    settings: tuple[object, ...],
    texts: Sequence[Sequence[int]],
    compute: Callable[[Sequence[Sequence[int]]], FloatArray],
) -> FloatArray:
    """Return values of texts: if `computes_once`, each computed alone and at most once; otherwise, all together.

    Parameters
    ----------
    model
        The model, which remembers the values.
    settings
        All that values depend on besides the text, the weights and the number of threads, with a unique `repr`.
    texts
        Token ids of each text.
    compute
        Returns the values of some texts; shape (number of these texts, size).

    Returns
    -------
    array of shape (len(texts), size)
    """
    if not computes_once(model):
        return compute(texts)
    settings_hash = hashlib.blake2b(repr((settings, torch.get_num_threads())).encode(), digest_size=16)
    values: dict[bytes, FloatArray] = {}
    keys = []
    for text in texts:
        text_hash = settings_hash.copy()
        text_hash.update(np.asarray(text, dtype=np.int64).tobytes())
        key = text_hash.digest()
        keys.append(key)
        if key in values:
            continue
        if key in model.values:
            values[key] = model.values[key]
        else:
            values[key] = compute([text])[0]
    model.values.update(values)
    size = ENTRY_BYTES + values[keys[0]].nbytes
    for key in list(model.values)[: max(0, len(model.values) - MEMORY_LIMIT // size)]:
        del model.values[key]  # the oldest ones
    return np.stack([values[key] for key in keys])
