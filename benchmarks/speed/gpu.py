"""What a GPU gives: one command of at most six minutes, which prints speed, memory and trials per minute.

    python benchmarks/speed/gpu.py             # on a machine with a card; needs the extras lm and qlora
    python benchmarks/speed/gpu.py --rehearse  # tiny models on the CPU: runs every part, and its figures mean nothing

Each part runs in a process of its own, for a limited time. A part that fails prints why, and the next one starts.
Models have the published shapes and random weights, which have the speed of pretrained ones.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

MEASURED_SECONDS = 15
"""Seconds of a run through the command line, after its workers have started."""
PARTS = {"bert-base": 60, "workers": 100, "qlora": 60, "gpt2": 50, "gemma-270m": 60}
"""Longest time of each part in seconds."""
VOCABULARY = 8000
"""Tokens of the tokenizers, which gives about as many tokens per text as those of the published models."""
GEMMA = {
    "vocab_size": 262_144, "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18,
    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512,
}  # fmt: skip
MISTRAL = {
    "vocab_size": 32_768, "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32_768,
}  # fmt: skip
TINY: dict[str, dict[str, Any]] = {
    "bert-base": {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 9000
    },
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 9000},
    "gemma-270m": {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "intermediate_size": 64, "head_dim": 16, "vocab_size": 9000,
    },
    "qlora": {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 128, "vocab_size": 9000, "max_position_embeddings": 2048,
    },
}  # fmt: skip


def say(part: str, **values: Any) -> None:
    """Print a figure for readers, and for the table."""
    print(json.dumps({"part": part, **values}), flush=True)


class Bench:
    """Folder of models and runs, and sizes of what is measured."""

    def __init__(self, folder: Path, is_rehearsal: bool) -> None:
        self.folder = folder
        self.is_rehearsal = is_rehearsal
        self.device = "cpu" if is_rehearsal else "cuda"
        self.num_train, self.num_test, self.num_prompts = (100, 500, 100)
        if is_rehearsal:
            self.num_train, self.num_test, self.num_prompts = (24, 24, 8)

    def model(self, name: str) -> Path:
        """Return the folder of a model with random weights, which is written once."""
        import torch  # noqa: PLC0415 - the main process needs no torch
        import transformers  # noqa: PLC0415 - as above

        from peekbench import load_dataset  # noqa: PLC0415 - as above
        from peekbench_lm.loading import quiet_transformers  # noqa: PLC0415 - as above
        from peekbench_lm.nano import train_tokenizer  # noqa: PLC0415 - as above

        folder = self.folder / name
        if (folder / "config.json").is_file():
            return folder
        makers: dict[str, tuple[Any, Any, dict[str, Any], Any]] = {
            "bert-base": (transformers.BertForMaskedLM, transformers.BertConfig, {}, "masked"),
            "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config, {}, "causal"),
            "gemma-270m": (transformers.Gemma3ForCausalLM, transformers.Gemma3TextConfig, GEMMA, "causal"),
            "qlora": (transformers.MistralForCausalLM, transformers.MistralConfig, MISTRAL, "causal"),
        }
        network, config, shape, kind = makers[name]
        settings = TINY[name] if self.is_rehearsal else shape
        torch.manual_seed(0)
        large = name == "qlora" and not self.is_rehearsal
        previous = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16 if large else previous)  # 14 GB instead of 29
        try:
            with quiet_transformers(), torch.device("cuda" if large else "cpu"):
                model = network(config(**settings))
            model.save_pretrained(folder)
        finally:
            torch.set_default_dtype(previous)
        context_length = 2048 if name == "qlora" else 512
        texts = list(load_dataset("docstrings.stdlib").inputs)
        train_tokenizer(kind, texts, VOCABULARY, context_length).save_pretrained(folder)
        return folder

    def draw(self, seed: int, num_test: int) -> tuple[Any, Any, list[str], list[str]]:
        """Return task, train, extra and test texts, which are real docstrings."""
        import numpy as np  # noqa: PLC0415 - as above

        from peekbench import Labeled, Task, load_dataset  # noqa: PLC0415 - as above
        from peekbench.records import SourceRef  # noqa: PLC0415 - as above

        source = SourceRef("docstrings.stdlib", {}, Path.cwd())
        data = load_dataset(source)
        rows = np.random.default_rng(seed).permutation(len(data.inputs))[: self.num_train + 2 * num_test]
        texts, labels = [data.inputs[row] for row in rows], np.asarray(data.labels)[rows]
        task = Task("stdlib", "classification", data.class_names, "The text is documentation of Python.", source)
        train = Labeled(tuple(texts[: self.num_train]), labels[: self.num_train])
        return task, train, texts[self.num_train : -num_test], texts[-num_test:]

    def write_spec(self, name: str, num_subsamples: int, workers: int) -> Path:
        """Write a spec of task-adaptive pretraining of BERT-base."""
        spec = {
            "name": name,
            "seed": 0,
            "tasks": ["docstrings.stdlib"],
            "methods": [{"use": "finetune.tapt", "options": {"model": str(self.model("bert-base"))}}],
            "design": {
                "num_train": self.num_train, "num_test": self.num_test, "num_subsamples": num_subsamples,
                "crossover": False,
            },
            "analyses": ["summary"],
            "executor": {"use": "local", "options": {"workers": workers}},
        }  # fmt: skip
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(spec), encoding="utf-8")
        return path

    def start(self, spec: Path) -> subprocess.Popen[bytes]:
        """Start a run in the folder. Its workers end with it, and it ends with the process group of the part."""
        log = (self.folder / f"{spec.stem}.log").open("ab")
        command = [sys.executable, "-m", "peekbench", "run", str(spec)]
        return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def count(self, name: str) -> int:
        """Return the number of finished trials of a run."""
        path = self.folder / "runs" / f"{name}.sqlite"
        try:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
                return len(store.execute("SELECT 1 FROM trials WHERE error IS NULL").fetchall())
        except sqlite3.OperationalError:
            return 0


def peak_of_card(device: str) -> float:
    """Return the operations per second of a large bf16 matrix product."""
    import torch  # noqa: PLC0415 - as above

    size, repeats = (8192, 20) if device == "cuda" else (256, 2)
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        left @ right
    wait(device)
    started = time.perf_counter()
    for _ in range(repeats):
        left @ right
    wait(device)
    return 2 * size**3 * repeats / (time.perf_counter() - started)


def wait(device: str) -> None:
    """Wait until the card has done its work."""
    import torch  # noqa: PLC0415 - as above

    if device == "cuda":
        torch.cuda.synchronize()


def measure_trial(bench: Bench, name: str) -> None:
    """Print seconds per trial of three arms, with memory and share of the peak, and those of the Trainer."""
    import torch  # noqa: PLC0415 - as above
    from straightforward import run_arm  # noqa: PLC0415 - as above

    from peekbench import Context, Folders  # noqa: PLC0415 - as above
    from peekbench.cache import cache_folder  # noqa: PLC0415 - as above
    from peekbench_finetune.fit import tapt  # noqa: PLC0415 - as above
    from peekbench_finetune.options import Tapt  # noqa: PLC0415 - as above

    folder, peak = bench.model(name), peak_of_card(bench.device)
    options = Tapt.model_validate({"model": str(folder), "device": bench.device})
    weights = sum(
        weight.numel() for key, weight in torch_weights(folder).items() if weight.ndim == 2 and "embed" not in key
    )
    for seed in (0, 1):  # the first trial loads the model and the kernels
        task, train, extra, test = bench.draw(seed, bench.num_test)
        context, tokens, memory = Context(seed, 1, Folders(Path.cwd(), cache_folder())), 0.0, 0.0
        wait(bench.device)
        started = time.perf_counter()
        for unlabeled in (None, extra, test):
            predictor = tapt(unlabeled, train, task, options=options, context=context)
            predictor.predict(test)
            metrics = predictor.metrics
            tokens += metrics.get("pretraining_tokens", 0) + metrics["classification_tokens"]
            memory = max(memory, metrics["peak_memory_mb"])
            del predictor
        wait(bench.device)
        seconds = time.perf_counter() - started
    share = 6 * weights * tokens / seconds / peak
    say(name, ours=seconds, memory_gb=memory / 1e3, share_of_peak=share, peak_tflops=peak / 1e12)
    task, train, extra, test = bench.draw(1, bench.num_test)
    labeled = (train.inputs, train.labels.astype(int).tolist())
    short = tuple(texts[:16] for texts in labeled)
    run_arm(folder, extra[:16], short, test[:16], task.num_classes, options, 1, bf16=True)  # loads kernels
    if bench.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    for unlabeled in (None, extra, test):
        run_arm(folder, unlabeled, labeled, test, task.num_classes, options, 1, bf16=True)
    wait(bench.device)
    theirs = time.perf_counter() - started
    say(name, trainer=theirs, times_as_fast=theirs / seconds)


def torch_weights(folder: Path) -> dict[str, Any]:
    """Return the weights of a model."""
    from safetensors.torch import load_file  # noqa: PLC0415 - as above

    return {key: weight for path in folder.glob("*.safetensors") for key, weight in load_file(path).items()}


def measure_workers(bench: Bench) -> None:
    """Print trials per minute through `peekbench run` with 1, 4 and 8 workers, each for a limited time."""
    for workers in (1, 8, 4):
        name = f"workers{workers}"
        if bench.is_rehearsal and workers > 2:
            workers = 2
        process = bench.start(bench.write_spec(name, 5000, workers))
        deadline = time.monotonic() + 60
        while bench.count(name) < workers and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        before, started = bench.count(name), time.monotonic()
        time.sleep(MEASURED_SECONDS)
        done, elapsed = bench.count(name) - before, time.monotonic() - started
        process.kill()
        process.wait(20)
        log = (bench.folder / f"{name}.log").read_text("utf-8", "replace").splitlines()
        note = next((line for line in reversed(log) if "now working" in line), " ".join(log[-2:]))
        say("workers", workers=workers, trials_per_minute=60 * done / elapsed, note=note.strip()[-160:])


def measure_qlora(bench: Bench) -> None:
    """Print tokens per second of training on prompts with four-bit weights."""
    from importlib.util import find_spec  # noqa: PLC0415 - as above

    from peekbench import Context, Folders  # noqa: PLC0415 - as above
    from peekbench.cache import cache_folder  # noqa: PLC0415 - as above
    from peekbench_prompting.options import Pretrain  # noqa: PLC0415 - as above
    from peekbench_prompting.training import pretrain  # noqa: PLC0415 - as above

    weights = "nf4"
    if find_spec("bitsandbytes") is None:
        if not bench.is_rehearsal:
            raise SystemExit("bitsandbytes is not installed; pip install 'peekbench[qlora]'")
        weights = "fp32"
    started = time.perf_counter()
    folder = bench.model("qlora")
    say("qlora", seconds_to_write_weights=time.perf_counter() - started)
    settings = {"model": str(folder), "device": bench.device, "weights": weights, "scoring": {"precision": "bf16"}}
    options = Pretrain.model_validate({**settings, "pretraining": {"batch_size": 16}})
    task, train, extra, test = bench.draw(1, bench.num_prompts)
    context = Context(1, 1, Folders(Path.cwd(), cache_folder()))
    for texts in (extra[:16], extra):  # the first call loads the weights and the kernels
        predictor = pretrain(texts, train, task, options=options, context=context)
    started = time.perf_counter()
    predictor.predict(test)
    wait(bench.device)
    scoring = time.perf_counter() - started
    metrics = predictor.metrics
    say(
        "qlora", tokens_per_second=metrics["pretraining_tokens_per_second"],
        texts_scored_per_second=len(test) / scoring, memory_gb=metrics["peak_memory_mb"] / 1e3, weights=weights,
    )  # fmt: skip


FUNCTIONS: dict[str, Callable[[Bench], None]] = {
    "workers": measure_workers,
    "qlora": measure_qlora,
}


def run_part(part: str, seconds: float, folder: Path, is_rehearsal: bool) -> dict[str, Any]:
    """Run a part in a process of its own; return its figures, and print why if it fails."""
    command = [sys.executable, __file__, "--part", part, "--folder", str(folder)]
    if is_rehearsal:
        command.append("--rehearse")
    started = time.monotonic()
    output = folder / f"{part}.out"
    with output.open("wb") as out, (folder / f"{part}.err").open("wb") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, start_new_session=True)
        try:
            status = f"exit status {process.wait(seconds)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = f"longer than {seconds:.0f} s"
    figures: dict[str, Any] = {}
    for line in output.read_text("utf-8").splitlines():
        if line.startswith('{"part"'):
            found = json.loads(line)
            print(f"  {line}", flush=True)
            if "workers" in found:
                found = {f"workers_{found['workers']}": found["trials_per_minute"]}
            figures |= found
    print(f"{part}: {time.monotonic() - started:.0f} s", flush=True)
    if status != "exit status 0":
        last = (folder / f"{part}.err").read_text("utf-8", "replace").strip().splitlines()[-3:]
        print(f"{part} FAILED ({status}): " + " | ".join(last), flush=True)
    return figures


def print_table(figures: dict[str, dict[str, Any]]) -> None:
    """Print the table of docs/performance.md."""
    print("\n| model | peekbench, s per trial | Trainer, bf16 | times as fast | memory | share of the peak |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in ("bert-base", "gpt2", "gemma-270m"):
        found = figures.get(name, {})
        cells = [found.get(key) for key in ("ours", "trainer", "times_as_fast", "memory_gb", "share_of_peak")]
        texts = ["-" if cell is None else f"{cell:.3g}" for cell in cells]
        if cells[3] is not None:
            texts[3] += " GB"
        if cells[4] is not None:
            texts[4] = f"{cells[4]:.1%}"
        print(f"| {name} | {' | '.join(texts)} |")
    for key, value in figures.get("workers", {}).items():
        if key.startswith("workers_"):
            number = key.removeprefix("workers_")
            print(f"\n`peekbench run`, BERT-base, {number} workers: {value:.1f} trials per minute")
    found = figures.get("qlora", {})
    keys = ("tokens_per_second", "memory_gb", "texts_scored_per_second")
    print("\nqlora: " + (", ".join(f"{key} {found[key]:.3g}" for key in keys if key in found) or "no figures"))


def main() -> None:
    """Run the parts one after another, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="tiny models on the CPU")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="folder of models and runs; by default a temporary one")
    arguments = parser.parse_args()
    if arguments.part:
        bench = Bench(arguments.folder, arguments.rehearse)
        function = FUNCTIONS.get(arguments.part)
        if function is None:
            measure_trial(bench, arguments.part)
        else:
            function(bench)
        return
    if arguments.rehearse:
        os.environ["OMP_NUM_THREADS"] = "1"  # more threads slow down models of this size
    figures = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for part in arguments.parts:
            limit = PARTS[part] * (10 if arguments.rehearse else 1)
            figures[part] = run_part(part, limit, folder, arguments.rehearse)
    print_table(figures)


if __name__ == "__main__":
    main()
