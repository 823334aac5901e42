"""Estimate of the memory of a GPU that a fit needs, from the files of its model and its options.

Weights, states of the optimizer and activations are counted for steps in which all texts are as long as the context.
Other fits of a worker keep the weights of their own models, and the allocator keeps blocks of the wrong size; both are
part of a margin. An executor repeats fits that run out of memory nevertheless.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from peekbench import DataError, Folders
from peekbench_lm.defects import read_json
from peekbench_lm.model_files import DUPLICATE_PREFIX, find_model
from peekbench_lm.options import ModelOptions, RecipeOptions

GB = 10**9
CONTEXT = 0.6 * GB  # of CUDA and of the kernels that torch loads
MARGIN = 1.25
UNIT = GB // 2  # estimates are multiples of it, so that similar fits can use the same worker
TRAINED_BYTES = 22
"""Bytes of a trained weight: itself, the loaded value that the next fit starts from, gradient and two moments of AdamW
in fp32, and a copy in bf16."""
FROZEN_BYTES = 4  # of a weight in fp32, without a copy in bf16
BF16_BYTES = 2
NF4_BYTES = 0.55  # with the constants of double quantization
ADAPTER_BYTES = 16  # as for a trained weight, without loaded value and copy
SNAPSHOT_BYTES = 8  # of two copies of the trained weights
ADAPTER_WIDTHS = 20  # sum of inputs and outputs of the linear layers of a block, in hidden sizes
ACTIVATION_BYTES = 34
"""Bytes that the backward pass of a block needs for each token and unit of the hidden state (Korthikanti et al. 2022,
arXiv 2205.05198, equation 1, without the scores of attention, which are not kept)."""
CHECKPOINT_BYTES = 4  # of the same, if only the inputs of blocks are kept
LOSS_ROWS, LOSS_BYTES = 1024, 16  # tokens whose scores are in memory at once, and bytes of one score
KEPT_BYTES = 2  # of the score of each word that a training step keeps for each token to predict
PREDICTION_BATCH = 64  # texts of a fit that trains nothing
NAMES = {
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "vocabulary": ("vocab_size",),
}
"""Names that configurations of transformers have for the sizes of a model."""


def estimate_memory(options: ModelOptions, folders: Folders) -> int:
    """Return the bytes of a GPU that a fit needs; 0 if the model is not on this machine or of an unknown form.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Examples
    --------
    >>> estimate_memory(ModelOptions(model="./missing"), Folders(Path("."), Path(".")))
    0
    """
    try:
        folder = find_model(options.model, options.revision, folders).path
    except DataError:  # which the fit itself will report
        return 0
    config = read_json(folder / "config.json")
    hidden, layers, vocabulary = (next((config[key] for key in keys if key in config), 0) for keys in NAMES.values())
    num_weights = sum(map(_count_weights, folder.glob("*.safetensors")))
    if not num_weights or not hidden or not layers:
        return 0
    recipes = list(_find_recipes(options))
    tokens = _count_step_tokens(options)
    adapters = getattr(options, "lora", None)
    num_trained = 0
    if adapters is not None:
        num_trained = ADAPTER_WIDTHS * adapters.rank * layers * hidden
    size: float = num_trained * ADAPTER_BYTES + LOSS_ROWS * vocabulary * LOSS_BYTES
    if recipes:
        size += tokens * vocabulary * KEPT_BYTES
    if getattr(options, "weights", "") == "nf4":
        size += NF4_BYTES * num_weights + 4 * vocabulary * hidden  # embedding and head stay in bf16
    elif recipes and adapters is None:
        size += TRAINED_BYTES * num_weights
        num_trained = num_weights
    elif recipes:
        size += (FROZEN_BYTES + BF16_BYTES) * num_weights
    else:
        size += FROZEN_BYTES * num_weights
    if getattr(options, "score_texts", False):
        size += SNAPSHOT_BYTES * num_trained
    if not recipes:
        size += tokens * hidden * ACTIVATION_BYTES
    elif hasattr(options, "weights"):  # methods with four-bit weights recompute layers on a GPU
        size += tokens * hidden * (layers * CHECKPOINT_BYTES + ACTIVATION_BYTES)
    else:
        size += tokens * hidden * layers * ACTIVATION_BYTES
    return math.ceil((CONTEXT + MARGIN * size) / UNIT) * UNIT


def _count_step_tokens(options: ModelOptions) -> int:
    """Return the tokens of the largest training step, or of a batch of predictions, if all texts fill the context."""
    length: int = getattr(options, "sequence_length", options.context_length)  # of a packed sequence, or of a text
    return max((recipe.batch_size for recipe in _find_recipes(options)), default=PREDICTION_BATCH) * length


def _find_recipes(options: BaseModel) -> Iterator[RecipeOptions]:
    """Yield the hyperparameters of the training stages."""
    for name in type(options).model_fields:
        value = getattr(options, name)
        if isinstance(value, RecipeOptions):
            yield value


def _count_weights(path: Path) -> int:
    """Return the number of weights of a file, of which only the beginning is read."""
    if path.name.startswith(DUPLICATE_PREFIX):
        return 0
    with path.open("rb") as file:
        tensors = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(tensor["shape"]) for name, tensor in tensors.items() if name != "__metadata__")
