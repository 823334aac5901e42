"""Speed and memory of prompt pretraining and zero-shot classification with QLoRA and a network of Mistral-7B's size.

Each trial has three arms and 100 test texts. The script prints seconds per trial, peak memory and the estimated
duration of the study's zero-shot experiment. It asserts nothing. Without a GPU, it prints that it was skipped.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from finetuning import in_process
from prompt_pretraining import draw
from transformers import AutoTokenizer, MistralConfig, MistralForCausalLM

from peekbench import Context, Folders, Labeled
from peekbench.cache import cache_folder
from peekbench_lm.sources.builtin import build_model
from peekbench_prompting.training import pretrain
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
    """Save random bf16 weights, and a tokenizer that gives about as many tokens per text as that of Mistral."""
    tokenizer = AutoTokenizer.from_pretrained(build_model("gpt2-nano", cache_folder()))
    tokenizer.model_max_length = 32768
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        MistralForCausalLM(MistralConfig(**config)).to("cpu").save_pretrained(folder)  # type: ignore[arg-type]


def measure(folder: Path, options: Pretrain, num_trials: int) -> dict[str, float]:
    """Measure seconds per trial, after a first trial that loads the model, and peak memory in megabytes."""
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
    """Print times with and without gradient checkpointing, and with scoring in fp32 and in bf16."""
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
                f"checkpointing {checkpointed!s:5}, scored in {precision}: {figures['trial']:.1f} s per trial "
                f"(pretraining {figures['pretraining']:.1f}, scoring {figures['scoring']:.1f}), loading "
                f"{figures['loading']:.0f} s, peak memory {figures['memory'] / 1024:.1f} GB; "
                f"{SPEC_TRIALS} trials would take {SPEC_TRIALS * figures['trial'] / 3600:.1f} h",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="use a tiny network, to try the script without a GPU")
    arguments = parser.parse_args()
    if not (torch.cuda.is_available() or arguments.tiny):
        print("skipped: no GPU is available")
    else:
        main(arguments.trials, arguments.tiny)
