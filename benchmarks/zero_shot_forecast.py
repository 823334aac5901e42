"""Forecasts the study's 1,500 zero-shot arms with Mistral-7B on a GPU from the operations of its matrix products.

Nothing is measured: the shape of the model is published, and the numbers of texts are those of
`specs/paper/zero_shot_mistral.yaml`. The number of tokens of a prompt and the shares of the peak are assumptions. The
forecast has matrix products with weights only, without attention, dequantization of four-bit weights, and loading.
"""

from __future__ import annotations

import argparse

from peekbench.execution.hardware import SHARES, find_hardware

HIDDEN, INTERMEDIATE, LAYERS, KEY_VALUES = 4096, 14336, 32, 1024
"""Shape of Mistral-7B."""
WEIGHTS = LAYERS * (2 * HIDDEN**2 + 2 * HIDDEN * KEY_VALUES + 3 * HIDDEN * INTERMEDIATE)
"""Weights of the matrices of its layers."""
TRIALS, TEXTS, TRAINED_ARMS, ARMS = 500, 100, 2, 3
"""Trials, texts of a set, arms of a trial that are trained, and arms of a trial."""
TRAINING = 6
"""Operations per weight and token: forward pass, recomputation at checkpoints, gradient of the activations. The weights
are frozen, so they have no gradient; adapters add less than 1%."""
SCORING = 2
"""Operations per weight and token of a forward pass."""


def count_operations(tokens: float) -> float:
    """Return the operations of all arms if a prompt has this number of tokens."""
    per_trial = TEXTS * tokens * WEIGHTS * (TRAINED_ARMS * TRAINING + ARMS * SCORING)
    return TRIALS * per_trial


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="h200", help="name of a GPU")
    parser.add_argument("--tokens", type=float, nargs="+", default=[64, 126, 256], help="tokens of a prompt")
    arguments = parser.parse_args()
    hardware = find_hardware(arguments.on)
    if not hardware.peak:
        parser.error(f"--on {arguments.on}: name a GPU, such as h200")
    print(f"{TRIALS * ARMS:,} arms on {hardware.name}, {hardware.peak / 1e12:,.0f} Tflop/s ({hardware.source})")
    print(f"{WEIGHTS / 1e9:.2f} billion weights; tokens and shares of the peak are assumed, not measured")
    for number in arguments.tokens:
        operations = count_operations(number)
        hours = [f"{operations / (share * hardware.peak) / 3600:.2f} h at {share:.0%}" for share in SHARES]
        least = operations / hardware.peak / 3600
        print(
            f"{number:g} tokens a prompt: {operations:.1e} operations; {', '.join(hours)}; one hour takes {least:.0%} "
            "of the peak"
        )
