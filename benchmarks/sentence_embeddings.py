"""Time of trials on cached sentence embeddings, and time to encode a text: `python benchmarks/sentence_embeddings.py`.

Times are CPU times of one thread, so other work on the machine affects them little. A trial fits and predicts in the
arms base, extra and test, with 50 train texts and 200 test texts of docstrings.numpy.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from peekbench import Context, Dataset, Folders, Labeled, Task, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import SourceRef
from peekbench.spec.components import MethodSpec, make_component
from peekbench_encoders.embeddings import Embedder
from peekbench_encoders.encoder import encode_texts, load_encoder
from peekbench_encoders.options import Encoder
from peekbench_lm.devices import deterministic
from peekbench_lm.model_files import find_model

METHODS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("linear", {}),
    ("whitening", {}),
    ("whitening", {"num_components": 64}),
    ("context", {}),
    ("context", {"num_clusters": 5}),
    ("all_but_the_top", {}),
    ("label_propagation", {"rule": "insert"}),
    ("label_propagation", {"rule": "induction"}),
)
NUM_TRIALS = 20
NUM_TRAIN, NUM_TEST = 50, 200
NUM_ENCODED = 64


def time_trial(method: MethodSpec, dataset: Dataset, folders: Folders, seed: int) -> float:
    """Return the CPU seconds of a trial whose texts are in the cache."""
    rows = np.random.default_rng(seed).permutation(len(dataset.labels))
    train_rows, extra_rows, test_rows, _ = np.split(rows, np.cumsum([NUM_TRAIN, NUM_TEST, NUM_TEST]))
    extra, test = (tuple(dataset.inputs[row] for row in part) for part in (extra_rows, test_rows))
    labels = np.asarray(dataset.labels)[train_rows]
    train = Labeled(tuple(dataset.inputs[row] for row in train_rows), labels)
    task = Task("docstrings.numpy", dataset.kind, dataset.class_names, "", SourceRef("docstrings.numpy"))
    started = time.process_time()
    for unlabeled in (None, extra, test):
        context = Context(seed, 1, folders)
        method.entry.method(unlabeled, train, task, options=method.options, context=context).predict(test)
    return time.process_time() - started


def time_encoding(texts: tuple[str, ...], folders: Folders) -> None:
    """Print the time to encode a text alone and in a batch of 32, and the largest difference of an embedding."""
    model = load_encoder(find_model(Encoder().model, "", folders), Encoder().context_length, "cpu")
    encode_texts(model, texts[:5], None, 1)
    embeddings = []
    for batch_size in (1, 32):
        started = time.process_time()
        with deterministic(model.device, 1):
            embeddings.append(model.encode(list(texts), batch_size=batch_size, show_progress_bar=False))
        seconds = time.process_time() - started
        print(f"batches of {batch_size}: {1000 * seconds / len(texts):.1f} ms a text")
    print(f"largest difference: {np.abs(embeddings[0] - embeddings[1]).max():.1e}")


def main() -> None:
    """Print a table of the methods, and the time to encode a text."""
    dataset = load_dataset("docstrings.numpy")
    folders = Folders(Path.cwd(), cache_folder())
    with threadpool_limits(1):
        Embedder(Encoder(), folders)(tuple(dataset.inputs))
        for name, options in METHODS:
            method = make_component(MethodSpec, f"embedding.{name}", dict(options))
            seconds = [time_trial(method, dataset, folders, seed) for seed in range(NUM_TRIALS + 1)][1:]
            print(f"{name} {dict(options)}: {1000 * float(np.median(seconds)):.0f} ms a trial")
        time_encoding(tuple(dataset.inputs[:NUM_ENCODED]), folders)


if __name__ == "__main__":
    main()
