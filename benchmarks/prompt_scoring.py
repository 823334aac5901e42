"""Speed of scoring class names after prompts, compared with one forward pass per text and class name.

The script prints times and asserts nothing. The model is a smaller GPT-2 with random weights; the texts and the 18
class names are real.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from scipy.special import softmax
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from peekbench import Task, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import FloatArray, SourceRef
from peekbench_hf.tasks import TASKS
from peekbench_lm.builtin_models import build_model
from peekbench_lm.devices import choose_device
from peekbench_lm.language_model import LanguageModel
from peekbench_prompting.fit import Scorer
from peekbench_prompting.options import Scoring
from peekbench_prompting.prompts import Prompt, PromptEncoder

MAX_TOKENS = 512
NUM_WARM_UP = 2  # texts


def sample_texts(number: int) -> list[str]:
    """Return texts of a docstrings task."""
    dataset = load_dataset(SourceRef("docstrings.stdlib", {}, Path.cwd()))
    rows = np.random.default_rng(0).permutation(len(dataset.inputs))[:number]
    return [str(dataset.inputs[row]) for row in rows.tolist()]


@torch.no_grad()
def score_one_by_one(model: LanguageModel, encoder: PromptEncoder, prompts: Sequence[Prompt]) -> FloatArray:
    """Compute class probabilities with one forward pass per text and class name, with the model's own attention."""
    scores = np.empty((len(prompts), encoder.task.num_classes))
    with model.default_attention():
        model.network.eval()
        for row, prompt in enumerate(prompts):
            for label in range(encoder.task.num_classes):
                answer = len(encoder.answer_tokens(prompt).tokens[label])
                ids = torch.tensor([encoder.with_answer(prompt, label)], device=model.device)
                table = model.network(ids).logits[0, -answer - 1 : -1].float().log_softmax(-1)
                scores[row, label] = table.gather(1, ids[0, -answer:, None]).mean().item()
    probabilities: FloatArray = softmax(scores, axis=1)
    return probabilities


def make_model(folder: Path, layers: int, width: int) -> None:
    """Save a GPT-2 with random weights, and a tokenizer that gives about as many tokens per text."""
    tokenizer = AutoTokenizer.from_pretrained(build_model("gpt2-nano", cache_folder()))
    tokenizer.model_max_length = MAX_TOKENS
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_layer=layers, n_embd=width, n_head=width // 64, bos_token_id=0, eos_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(folder)


def measure(layers: int, width: int, num_texts: int, threads: int, bare: bool) -> None:
    """Print the times of one model."""
    torch.set_num_threads(threads)
    record = next(task for task in TASKS if task.name == "massive")
    assert record.classes is not None
    names, instruction = tuple(record.classes.values()), "" if bare else record.instruction
    task = Task(record.name, "classification", names, instruction, SourceRef("", {}, Path()))
    with TemporaryDirectory() as folder:
        make_model(Path(folder), layers, width)
        model = LanguageModel(Path(folder), choose_device("auto"))
    encoder = PromptEncoder(model.tokenizer, task, MAX_TOKENS)
    prompts = encoder.encode(sample_texts(num_texts))
    scorer = Scorer(model, Scoring())
    (empty,) = encoder.encode([""])
    lengths = [len(prompt.ids) - len(empty.ids) for prompt in prompts]
    tokens = sum(map(len, encoder.answer_tokens(empty).tokens)) / task.num_classes
    print(
        f"{layers} layers, {width} wide; {task.name}: {task.num_classes} class names of {tokens:.1f} tokens,", end=" "
    )
    print(f"{num_texts} texts of {min(lengths)} to {max(lengths)} (mean {np.mean(lengths):.0f}),", end=" ")
    print(f"{len(empty.ids)} in the frame of each")
    seconds, probabilities = [], []
    for score in (scorer.probabilities, partial(score_one_by_one, model)):
        score(encoder, prompts[:NUM_WARM_UP])
        started = time.perf_counter()
        probabilities.append(score(encoder, prompts))
        seconds.append(time.perf_counter() - started)
    print(f"  one forward pass per text and class name {seconds[1]:8.2f} s")
    print(f"  each token once                          {seconds[0]:8.2f} s  {seconds[1] / seconds[0]:5.1f}x as fast")
    print(
        f"  largest difference of a probability      {np.abs(probabilities[0] - probabilities[1]).max():8.1e}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bare", action="store_true", help="omit the instruction of the task")
    arguments = parser.parse_args()
    measure(arguments.layers, arguments.width, arguments.texts, arguments.threads, arguments.bare)
