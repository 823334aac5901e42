"""Masked-token loss and embeddings of `builtin:minilm-mlm` on held-out training texts and on the texts of tasks.

    [PEEKBENCH_HUB_MIRROR=FOLDER] python benchmarks/minilm.py [--texts 200]

The first table has the mean loss in nats per masked token, on texts cut at 128 tokens with the same masks for all
models, of

- the model;
- a model of the same architecture with random weights;
- token frequencies of the paragraphs that are not held out: the mean over all tokens, which is the expected loss over
  random masks.

The first row has held-out paragraphs. The others have a random sample of each docstrings task, and, if a mirror of the
Hub is given, of each task in it.

The second table shows what the training leaves of the encoder's knowledge: the accuracy, on these tasks, of logistic
regression on the mean embeddings of the tokens, before and after the training, with 50 train texts and the mean over 20
draws. The script builds the models if they are not in the cache.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from peekbench import DataError, Dataset, Folders, load_dataset
from peekbench.cache import cache_folder
from peekbench_docstrings.recipes import RECIPES
from peekbench_hf.tasks import TASKS
from peekbench_lm import corpus
from peekbench_lm import minilm as minilm_mlm
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.model_files import find_model
from peekbench_lm.pretraining import mean_loss
from peekbench_lm.tokenizer import encode

CPU = torch.device("cpu")
NUM_PROBED = 700  # texts of a task that are embedded
NUM_TRAIN, NUM_DRAWS = 50, 20  # of linear classifiers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=200)
    num_texts = parser.parse_args().texts
    torch.set_num_threads(1)
    encoder, folder = (
        find_model(f"builtin:{name}", "", Folders(Path(), cache_folder())).path for name in ("minilm", "minilm-mlm")
    )
    with quiet_transformers():
        model = LanguageModel(folder, CPU)
        random_model = _random_model(folder)
    held_out, training = minilm_mlm.split_paragraphs(corpus.load_paragraphs())
    frequencies = minilm_mlm.unigram_log_probabilities(_encode(model, training), model.tokenizer)
    tasks = list(_tasks())
    print("| texts | `builtin:minilm-mlm` | random weights | token frequencies |\n|---|---|---|---|")
    for name, texts in [("held-out paragraphs", held_out), *((name, dataset.inputs) for name, dataset in tasks)]:
        rows = np.random.default_rng(0).permutation(len(texts))[:num_texts]
        encoded = _encode(model, [str(texts[row]) for row in rows])
        losses = [mean_loss(each, encoded, minilm_mlm.MASK_PROBABILITY, seed=0) for each in (model, random_model)]
        losses.append(-float(np.mean([frequencies[token] for ids in encoded for token in ids[1:-1]])))
        print(f"| {name} | {' | '.join(f'{loss:.2f}' for loss in losses)} |", flush=True)
    print("\n| task | `builtin:minilm` | `builtin:minilm-mlm` |\n|---|---|---|")
    with quiet_transformers():
        networks = [AutoModel.from_pretrained(path).eval() for path in (encoder, folder)]
    for name, dataset in tasks:
        accuracies = [_probe(network, model, dataset) for network in networks]
        print(f"| {name} | {' | '.join(f'{accuracy:.1%}' for accuracy in accuracies)} |", flush=True)


def _probe(network: Any, model: LanguageModel, dataset: Dataset) -> float:
    """Return the accuracy of linear classifiers of mean embeddings."""
    rows = np.random.default_rng(0).permutation(len(dataset.inputs))[:NUM_PROBED]
    encoded = _encode(model, [str(dataset.inputs[row]) for row in rows])
    with torch.no_grad():
        means = [network(torch.tensor([ids])).last_hidden_state[0].mean(0).numpy() for ids in encoded]
    embeddings, labels = np.stack(means), np.asarray(dataset.labels)[rows]
    accuracies = []
    for draw in range(NUM_DRAWS):
        order = np.random.default_rng(draw).permutation(len(rows))
        train, test = order[:NUM_TRAIN], order[NUM_TRAIN:]
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, C=0.01))
        accuracies.append(classifier.fit(embeddings[train], labels[train]).score(embeddings[test], labels[test]))
    return float(np.mean(accuracies))


def _random_model(folder: Path) -> LanguageModel:
    """Return a model with the configuration and the tokenizer of another model, and random weights."""
    torch.manual_seed(0)
    loader: Any = AutoModelForMaskedLM
    network = loader.from_config(AutoConfig.from_pretrained(folder))
    with tempfile.TemporaryDirectory() as copy:
        network.save_pretrained(copy)
        LanguageModel(folder, CPU).tokenizer.save_pretrained(copy)
        return LanguageModel(Path(copy), CPU)


def _encode(model: LanguageModel, texts: Sequence[str]) -> list[list[int]]:
    return encode(model.tokenizer, texts, minilm_mlm.CONTEXT_LENGTH)


def _tasks() -> Iterator[tuple[str, Dataset]]:
    """Yield the names and rows of the docstrings tasks, and of the tasks in a mirror of the Hub."""
    for recipe in RECIPES:
        yield f"`docstrings.{recipe.task}`", load_dataset(f"docstrings.{recipe.task}")
    if not os.environ.get("PEEKBENCH_HUB_MIRROR"):
        return
    missing = []
    for task in TASKS:
        try:
            dataset = load_dataset(f"hf.{task.name}")
        except DataError:
            missing.append(task.name)
        else:
            yield f"`hf.{task.name}`", dataset
    print(f"not in the mirror: {', '.join(missing) or 'none'}\n")


if __name__ == "__main__":
    main()
