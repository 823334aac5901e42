"""What are unlabeled texts in context worth to a language model, and are the test texts worth more?

The probabilities of a pool of texts by each prompt are computed once and kept, so the methods that only combine them,
`batch_calibration`, `neighbor_voting` and `prompt_choice`, can be measured on many subsamples in seconds. The prompts
of `self_labeled` differ between subsamples, so fewer of these are measured. Methods have the default options.

    python benchmarks/prompting/in_context.py MODEL OUT     # PEEKBENCH_HUB_MIRROR=FOLDER instead of the Hub

The script can be stopped; the next call goes on. It writes OUT/scores.csv, and prints boost, bias and the CPU seconds
of a fit with its predictions. The texts of a subsample are drawn from the pool, so the intervals are about the texts
of the pool.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import normalize

import peekbench as pb
from peekbench import Folders, Task
from peekbench.records import FloatArray, IntArray, SourceRef
from peekbench_lm.devices import deterministic
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.model_files import find_model
from peekbench_prompting.fit import Scorer, calibrate, make_encoder
from peekbench_prompting.in_context import average_votes, choose_self_labeled, embed_texts, rate_prompts
from peekbench_prompting.options import NeighborVoting, PromptChoice, SelfLabeled
from peekbench_prompting.prompts import ExamplePrompts

TASKS = "trec,emotion,rotten_tomatoes,clickbait_notclickbait_dataset"
PROMPTS = (None, *PromptChoice(model="x").templates)


@dataclass
class Costs:
    """CPU seconds per text of what the methods compute."""

    folder: Path

    def measure(self, name: str, compute: Callable[[], FloatArray], num_texts: int) -> FloatArray:
        """Return what a function computes, from a file if it exists; otherwise write the file and the cost."""
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            started = time.process_time()
            values = compute()
            np.savez(path, values=values, seconds=(time.process_time() - started) / num_texts)
        with np.load(path) as saved:
            return np.asarray(saved["values"])

    def of(self, name: str) -> float:
        """Return the seconds per text of a computation."""
        with np.load(self.folder / f"{name}.npz") as saved:
            return float(saved["seconds"])


class Pool:
    """Texts of a task, and what a model makes of them."""

    def __init__(self, name: str, model: LanguageModel, arguments: argparse.Namespace) -> None:
        dataset = pb.load_dataset(f"hf.{name}")
        rows = np.random.default_rng(0).permutation(len(dataset.inputs))[: arguments.pool]
        self.name, self.model, self.num_test = name, model, arguments.num_test
        self.texts = [str(dataset.inputs[row]) for row in rows]
        self.labels = np.asarray(dataset.labels)[rows]
        source = SourceRef(f"hf.{name}", {}, Path.cwd())
        self.task = Task(name, "classification", dataset.class_names, dataset.instruction, source)
        folder = arguments.out / name
        folder.mkdir(parents=True, exist_ok=True)
        self.costs = Costs(folder)

    def probabilities(self, number: int) -> FloatArray:
        """Return the class probabilities of all texts by a prompt; shape (n, num_classes)."""
        options = PromptChoice(model="x")

        def compute() -> FloatArray:
            make = partial(make_encoder, self.model, self.task, options, template=PROMPTS[number])
            return self._score(ExamplePrompts(make), self.texts)

        return self.costs.measure(f"prompt_{number}", compute, len(self.texts))

    def embeddings(self) -> FloatArray:
        """Return the embeddings of all texts; shape (n, hidden_size)."""
        compute = partial(embed_texts, self.model, self.texts, NeighborVoting(model="x"))
        return self.costs.measure("embeddings", compute, len(self.texts))

    def self_labeled(self, subsample: int, arm: str) -> FloatArray:
        """Return the class probabilities of the test texts of a subsample after a fit."""
        options = SelfLabeled(model="x")
        sets = self.draw(subsample)
        plain = self.probabilities(0)[sets[arm]]

        def compute() -> FloatArray:
            rows, labels = choose_self_labeled(plain, options.num_examples, options.selection)
            examples = [
                (self.texts[sets[arm][row]], self.task.class_names[label])
                for row, label in zip(rows, labels, strict=True)
            ]
            prompts = ExamplePrompts(partial(make_encoder, self.model, self.task, options), examples)
            return self._score(prompts, [self.texts[row] for row in sets["test"]])

        return self.costs.measure(f"self_labeled_{subsample}_{arm}", compute, self.num_test)

    def draw(self, subsample: int) -> dict[str, IntArray]:
        """Return the rows of the extra and the test set of a subsample."""
        rows = np.random.default_rng([1, subsample]).permutation(len(self.texts))
        return {"extra": rows[: self.num_test], "test": rows[self.num_test : 2 * self.num_test]}

    def _score(self, prompts: ExamplePrompts, texts: list[str]) -> FloatArray:
        scorer = Scorer(self.model, PromptChoice(model="x").scoring)
        probabilities = np.empty((len(texts), self.task.num_classes))
        with deterministic(self.model.device, 1):
            for batch in prompts.build(texts):
                probabilities[batch.rows] = scorer.probabilities(batch.encoder, batch.prompts)
        return probabilities

    def predictors(self) -> dict[str, Callable[[IntArray, IntArray], FloatArray]]:
        """Return the methods that combine probabilities, as functions of the unlabeled and the test rows."""
        plain, embeddings = self.probabilities(0), self.embeddings()
        every = np.stack([self.probabilities(number) for number in range(len(PROMPTS))])
        voting, choice = NeighborVoting(model="x"), PromptChoice(model="x")

        def vote(unlabeled: IntArray, test: IntArray, *, exclude_self: bool = False) -> FloatArray:
            center = embeddings[unlabeled].mean(axis=0)
            similarities = normalize(embeddings[test] - center) @ normalize(embeddings[unlabeled] - center).T
            if exclude_self:
                similarities[test[:, None] == unlabeled] = -np.inf
            return average_votes(plain[test], plain[unlabeled], similarities, voting.num_neighbors)

        return {
            "batch_calibration": lambda unlabeled, test: calibrate(plain[test], plain[unlabeled].mean(axis=0), 1.0),
            "neighbor_voting": vote,
            "neighbor_voting (exclude_self)": partial(vote, exclude_self=True),
            "prompt_choice": lambda unlabeled, test: every[
                rate_prompts(every[:, unlabeled], choice.criterion).argmax(), test
            ],
        }

    def scores(self, num_subsamples: int, num_self_labeled: int) -> Iterator[dict[str, object]]:
        """Yield the accuracies of all arms of each method and subsample, and the cost of fits that share nothing."""
        predictors = self.predictors()
        for subsample in range(num_subsamples):
            sets = self.draw(subsample)
            answers = {
                name: [predict(sets[arm], sets["test"]) for arm in ("extra", "test")]
                for name, predict in predictors.items()
            }
            if subsample < num_self_labeled:
                answers["self_labeled"] = [self.self_labeled(subsample, arm) for arm in ("extra", "test")]
            for name, (extra, test) in answers.items():
                tables = {"base": self.probabilities(0)[sets["test"]], "extra": extra, "test": test}
                accuracies = {
                    arm: float((table.argmax(axis=1) == self.labels[sets["test"]]).mean())
                    for arm, table in tables.items()
                }
                shares = np.bincount(self.labels[sets["test"]]) / self.num_test
                seconds = {"base": self.num_test * self.costs.of("prompt_0")}
                seconds |= dict.fromkeys(("extra", "test"), self.cost(name))
                yield {
                    "method": f"prompting.{name}",
                    "task": self.name,
                    "num_test": self.num_test,
                    "subsample": subsample,
                    "majority": float(shares.max()),
                    **accuracies,
                    **{f"fit_seconds_{arm}": round(cost, 1) for arm, cost in seconds.items()},
                }

    def cost(self, method: str) -> float:
        """Return the CPU seconds of a fit with `num_test` unlabeled texts and the predictions of `num_test` texts."""
        plain = self.costs.of("prompt_0")
        per_text: dict[str, float] = {"batch_calibration": 2 * plain, "prompt_choice": plain}
        per_text["prompt_choice"] += sum(self.costs.of(f"prompt_{number}") for number in range(len(PROMPTS)))
        per_text["neighbor_voting"] = 2 * (plain + self.costs.of("embeddings"))
        if method == "self_labeled":
            per_text["self_labeled"] = plain + self.costs.of("self_labeled_0_extra")
        seconds: float = self.num_test * per_text[method.partition(" ")[0]]
        return seconds


def main() -> None:
    """Measure the methods, and print boost and bias in percentage points with intervals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="as the option `model` of the methods, such as builtin:gemma-270m")
    parser.add_argument("out", type=Path, help="folder of what is computed")
    parser.add_argument("--tasks", default=TASKS, help=f"tasks of `hf`, with commas (default: {TASKS})")
    parser.add_argument("--pool", type=int, default=1000, help="texts of each task")
    parser.add_argument("--num-test", type=int, default=200, help="texts of a test set, and of an extra set")
    parser.add_argument("--subsamples", type=int, default=100)
    parser.add_argument("--self-labeled", type=int, default=10, help="subsamples with which self_labeled is measured")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folders = Folders(Path.cwd(), Path.home() / ".cache" / "peekbench")
    model = LanguageModel(find_model(arguments.model, "", folders).path, torch.device("cpu"), "frozen")
    pools = [Pool(name, model, arguments) for name in arguments.tasks.split(",")]
    for subsample in range(max(1, arguments.self_labeled)):  # tasks take turns, so that a stop leaves some of each
        for pool in pools:
            pool.probabilities(min(subsample, len(PROMPTS) - 1))
            for arm in ("extra", "test"):
                if arguments.self_labeled:
                    pool.self_labeled(subsample, arm)
                    print(pool.name, subsample, arm, flush=True)
    rows = [row for pool in pools for row in pool.scores(arguments.subsamples, arguments.self_labeled)]
    scores = pd.DataFrame(rows)
    scores.to_csv(arguments.out / "scores.csv", index=False)
    print(scores.groupby(["task", "method"])[["base", "extra", "test"]].mean().mul(100).round(1).to_string())
    for (task, method), _ in scores.groupby(["task", "method"]):
        pool = next(pool for pool in pools if pool.name == task)
        seconds = pool.cost(str(method).removeprefix("prompting."))
        print(f"{task} {method}: {seconds:.1f} CPU seconds for a fit")
    print(pb.analyze(arguments.out / "scores.csv"))


if __name__ == "__main__":
    main()
