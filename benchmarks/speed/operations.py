"""Operations per training step on the simulated CUDA device of the tests: what a GPU that waits for launches would do.

Prints figures and checks nothing. Counts do not depend on the width of a model, so models have few weights.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from steps import SHAPES, make_model

from peekbench import load_dataset
from peekbench.records import SourceRef
from peekbench_finetune.options import Pretraining
from peekbench_lm.devices import deterministic
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokenizer import encode

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "fixtures"))
from simulated_cuda import CUDA, simulated_cuda

BATCH_SIZE = 16
NARROW = {
    "bert-base": {"hidden_size": 48, "intermediate_size": 96},
    "gpt2": {"n_embd": 48},
    "gemma-270m": {"hidden_size": 48, "intermediate_size": 96, "head_dim": 16, "vocab_size": 40_000},
}
"""Settings that replace those of the published shapes."""
RANKS = {"gemma-270m": 16}
"""Models of which adapters of this rank are trained, instead of all weights."""
WITHOUT_LAUNCH = {
    "local_scalar_dense", "reshape_alias", "unsafe_view", "alias", "as_strided", "detach", "diagonal", "empty",
    "empty_like", "empty_strided", "expand", "is_pinned", "is_same_size", "lift_fresh", "narrow", "new_empty",
    "new_empty_strided", "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "t",
    "transpose", "unbind", "unfold", "unsqueeze", "view",
}  # fmt: skip
"""Operations that only allocate memory or describe it."""
FILLS = {"fill", "full", "full_like", "new_full", "new_zeros", "ones_like", "zero", "zeros", "zeros_like"}


def count(folder: Path, texts: list[str], num_steps: int, rank: int | None) -> Counter[str]:
    """Return the number of operations of some training steps in bf16, by name."""
    with simulated_cuda() as device, deterministic(CUDA, 1):
        model = LanguageModel(folder, CUDA, "frozen" if rank else "trained")
        model.precision = "bf16"
        if rank:
            model.add_adapters(rank, 2 * rank, 0.0, 0)
        ids = encode(model.tokenizer, texts[: num_steps * BATCH_SIZE], 256)
        recipe = Pretraining(epochs=1, batch_size=BATCH_SIZE).recipe(model.kind)
        device.operations.clear()
        pretrain(model, ids, recipe, 0.15, 0)
    totals: Counter[str] = Counter()
    for operation, number in device.operations.items():
        totals[operation.overloadpacket.__name__.strip("_")] += number
    return totals


def main() -> None:
    """Print the operations of a step of each model: those of four steps less those of two, which create states."""
    dataset = load_dataset(SourceRef("docstrings.stdlib", {}, Path.cwd()))
    rows = np.random.default_rng(1).permutation(len(dataset.inputs))[: 4 * BATCH_SIZE]
    texts = [dataset.inputs[row] for row in rows]
    torch.set_num_threads(1)
    for name, settings in NARROW.items():
        network, config, own = SHAPES[name]
        SHAPES[name] = network, config, {**own, **settings}
        with tempfile.TemporaryDirectory() as temporary:
            make_model(name, Path(temporary))
            totals = count(Path(temporary), texts, 4, RANKS.get(name))
            totals.subtract(count(Path(temporary), texts, 2, RANKS.get(name)))
        launched = {key: number / 2 for key, number in totals.items() if key not in WITHOUT_LAUNCH}
        fills = sum(number for key, number in launched.items() if key in FILLS)
        print(f"{name}: {sum(launched.values()):,.0f} operations a step, {fills:,.0f} of them fills", flush=True)
        for key, number in Counter(launched).most_common(12):
            print(f"  {number:6,.0f}  {key}")


if __name__ == "__main__":
    main()
