"""Prompt pretraining and zero-shot classification by QLoRA with the shape of Mistral-7B on a GPU, n=100, three arms.

Prints seconds a trial, the most memory held, and what the study's zero-shot experiment would take. Asserts nothing;
without a GPU it says that it skips.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from finetuning import in_process
from prompt_pretraining import draw

from peekbench import Context, Folders, Labeled
from peekbench.cache import cache_folder
from peekbench_lm.builtin import build_model
from peekbench_prompting.methods import pretrain
from peekbench_prompting.training_options import Pretrain

NUM_TEST = 100
SPEC_TRIALS = 500  # of specs/paper/zero_shot_mistral.yaml, three arms each
MISTRAL = {
    "vocab_size": 32768, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": None, "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5, "rope_theta": 1e6,
}  # fmt: skip
TINY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def make_model(folder: Path, config: dict[str, object], device: str) -> None:
    """Random weights in bf16, and a tokenizer that cuts these texts into about as many tokens as Mistral's."""
    from transformers import AutoTokenizer, MistralConfig, MistralForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(build_model("gpt2-nano", cache_folder()))
    tokenizer.model_max_length = 32768
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        MistralForCausalLM(MistralConfig(**config)).to("cpu").save_pretrained(folder)  # type: ignore[arg-type]


def measure(folder: Path, options: Pretrain, num_trials: int) -> dict[str, float]:
    """Seconds a trial after one that has loaded the model, and the most memory held, in megabytes."""
    task, texts = draw(2 * NUM_TEST)
    extra, test = texts[:NUM_TEST], texts[NUM_TEST:]
    train = Labeled((), torch.zeros(0, dtype=torch.long).numpy())
    figures = {"memory": 0.0, "loading": 0.0, "pretraining": 0.0, "scoring": 0.0}
    started = time.perf_counter()
    for trial in range(num_trials + 1):
        if trial == 1:
            started = time.perf_counter()
        for unlabeled in (None, extra, test):
            context = Context(trial, 1, Folders(Path.cwd(), cache_folder()))
            predictor = pretrain(unlabeled, train, task, options=options, context=context)
            predictor.predict(test)
            metrics = predictor.metrics
            figures["memory"] = max(figures["memory"], metrics["peak_memory_mb"])
            if trial == 0:
                figures["loading"] += metrics["loading_seconds"]
            else:
                figures["pretraining"] += metrics.get("pretraining_seconds", 0.0) / num_trials
                figures["scoring"] += metrics["scoring_seconds"] / num_trials
    return {**figures, "trial": (time.perf_counter() - started) / num_trials}


def main(num_trials: int, is_tiny: bool) -> None:
    """Print figures with gradient checkpointing and without, scored in fp32 and in bf16."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "mistral"
        in_process(make_model, folder, {**MISTRAL, **TINY} if is_tiny else MISTRAL, device)
        for checkpointed, precision in ((True, "fp32"), (True, "bf16"), (False, "bf16")):
            options = Pretrain.model_validate(
                {
                    "model": str(folder),
                    "gradient_checkpointing": checkpointed,
                    "scoring": {"precision": precision},
                }
            )
            figures = in_process(measure, folder, options, num_trials)
            print(
                f"checkpointing {checkpointed!s:5}, scored in {precision}: {figures['trial']:.1f} s a trial "
                f"(pretraining {figures['pretraining']:.1f}, scoring {figures['scoring']:.1f}), loading "
                f"{figures['loading']:.0f} s, most memory {figures['memory'] / 1024:.1f} GB; "
                f"{SPEC_TRIALS} trials would take {SPEC_TRIALS * figures['trial'] / 3600:.1f} h",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="a tiny network, to try the script itself anywhere")
    given = parser.parse_args()
    if not (torch.cuda.is_available() or given.tiny):
        print("no GPU here: skipped")
    else:
        main(given.trials, given.tiny)
