"""Errors and power of the audits of exposure, for a model whose training texts are known.

    python benchmarks/exposure.py [--repeats 1000] [--scores FOLDER]

The script trains builtin:gpt2-nano, which has seen no text of the docstrings tasks, once on paragraphs of other
packages among which four groups of 200 texts of docstrings.numpy are repeated 1, 3, 10 and 30 times. It writes these
training texts to a corpus file. Each audit then compares a group of texts with texts that were in no group.

Models score each text once. The repeats draw 150 of the 200 texts of a group and 150 unseen texts; clean repeats draw
both from texts that the model has not seen. So errors and power are those for this model and these texts. Shifted
repeats compare texts that the model has not seen with other such texts: of another package, or of another length.
The audit of exchangeability draws 15 of 20 shards; its clean repeats also draw which order counts as the published one.
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from exposure_repeats import Orders, Pool, print_table

from peekbench import Folders, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import FloatArray
from peekbench_exposure.text_shift import text_similarity
from peekbench_lm import corpus
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import log_likelihoods
from peekbench_lm.model_files import find_model
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import pretrain
from peekbench_overlap.corpus import read_pieces
from peekbench_overlap.index import NgramIndex
from peekbench_overlap.judge import count_texts, share_found
from peekbench_overlap.options import Ngram
from peekbench_overlap.search import NOWHERE, Search
from peekbench_overlap.words import split_texts
from peekbench_prompting.audit_options import Codec, MinK
from peekbench_prompting.codec import confidence_gains
from peekbench_prompting.exchangeability import make_shards, neighbor_scores, word_similarity
from peekbench_prompting.min_k import score_min_k

MODEL = "builtin:gpt2-nano"
LIMIT = 128  # tokens that the model reads at once
SEED = 0
DOSES = (0, 1, 3, 10, 30)
GROUP_SIZE, NUM_SHARDS = 200, 20
NUM_OTHER = 1500  # paragraphs of other packages in the training texts
CHUNK_SIZE, BATCH_SIZE = 128, 8  # tokens per chunk, chunks per step
MIN_K, PLUS_PLUS, CODEC = MinK(model=MODEL), MinK(model=MODEL, score="min_k_plus_plus"), Codec(model=MODEL)
NGRAM = Ngram(n=(8,), corpora=(Path("training.jsonl"),))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--scores", type=Path, help="file that keeps the scores for the next call")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.scores and arguments.scores.exists():
        pools, orders = pickle.loads(arguments.scores.read_bytes())
    else:
        pools, orders = score_everything()
        if arguments.scores:
            arguments.scores.write_bytes(pickle.dumps((pools, orders)))
    started = time.process_time()
    similarities = {
        name: {unit: text_similarity([text for part in parts for text in part], unit) for unit in ("word", "char")}
        for name, parts in compared_texts().items()
    }
    print_table(pools, similarities, orders, arguments.repeats)
    print(f"{time.process_time() - started:.0f} s of repeats")


def score_everything() -> tuple[dict[str, Pool], dict[str, Orders]]:
    """Train the model, and score all texts and orders."""
    started = time.process_time()
    generator = np.random.default_rng(SEED)
    groups, _, task = load_texts(generator)
    folders = Folders(Path(), cache_folder())
    model = LanguageModel(find_model(MODEL, "", folders).path, torch.device("cpu"))
    training = training_texts(groups, generator)
    train(model, training)
    print(
        f"{sum(map(len, encode(model, training)))} training tokens; {time.process_time() - started:.0f} s", flush=True
    )
    pools = {name: score_pool(model, parts, training) for name, parts in compared_texts().items()}
    print(f"texts are scored; {time.process_time() - started:.0f} s", flush=True)
    orders = {
        f"dose {dose}": score_orders(model, group, 10 if dose else 40)
        for dose, group in zip(DOSES, groups, strict=False)
    }
    orders["sorted"] = score_orders(model, task[: 2 * GROUP_SIZE], 10)
    print(f"orders are scored; {time.process_time() - started:.0f} s", flush=True)
    return pools, orders


def load_texts(generator: np.random.Generator) -> tuple[list[list[str]], list[str], list[str]]:
    """Return a group of texts for each dose and unseen texts, texts of another package, and all texts in order."""
    task = list(dict.fromkeys(load_dataset("docstrings.numpy").inputs))
    rows = generator.permutation(len(task))
    parts = np.split(rows, np.arange(1, len(DOSES) + 2) * GROUP_SIZE)[: len(DOSES) + 1]
    other = list(dict.fromkeys(load_dataset("docstrings.pandas").inputs))
    shifted = [other[row] for row in generator.permutation(len(other))[:GROUP_SIZE]]
    return [[task[row] for row in part] for part in parts], shifted, task


def compared_texts() -> dict[str, list[list[str]]]:
    """Return the parts of each pool: audited texts, unseen texts, and shifted texts."""
    groups, shifted, _ = load_texts(np.random.default_rng(SEED))
    pools = {f"dose {dose}": [group, groups[-1]] for dose, group in zip(DOSES, groups, strict=False)}
    return pools | {"shifted": [groups[0], groups[-1], shifted]}


def training_texts(groups: Sequence[Sequence[str]], generator: np.random.Generator) -> list[str]:
    """Return documents in random order: other paragraphs, and each group in its order as often as its dose."""
    paragraphs = corpus.load_paragraphs()
    others = [paragraphs[row] for row in generator.permutation(len(paragraphs))[:NUM_OTHER]]
    texts = ["\n".join(others[start : start + 10]) for start in range(0, len(others), 10)]
    size = GROUP_SIZE // NUM_SHARDS
    for dose, group in zip(DOSES, groups, strict=False):
        shards = ["\n".join(group[start : start + size]) for start in range(0, len(group), size)]
        texts += dose * shards
    return [texts[row] for row in generator.permutation(len(texts))]


def encode(model: LanguageModel, texts: Sequence[str]) -> list[list[int]]:
    encoded: list[list[int]] = model.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    return encoded


def train(model: LanguageModel, texts: Sequence[str]) -> None:
    """Train once on all documents, cut into chunks as models are trained on files."""
    chunks = [
        ids[start : start + CHUNK_SIZE]
        for ids in encode(model, texts)
        for start in range(0, max(1, len(ids) - 8), CHUNK_SIZE)
    ]
    pretrain(model, chunks, Recipe(1, BATCH_SIZE, 1e-3, "constant", 0.0, 1.0), 0.15, seed=0)


def score_pool(model: LanguageModel, parts: Sequence[Sequence[str]], training: Sequence[str]) -> Pool:
    """Compute what the audits need to know about texts."""
    texts = [text for part in parts for text in part]
    encoded = encode(model, texts)
    return Pool(
        np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        np.array([len(ids) for ids in encoded], dtype=np.float64),
        {
            "min_k": score_min_k(model, encoded, LIMIT, MIN_K),
            "min_k, ++": score_min_k(model, encoded, LIMIT, PLUS_PLUS),
            "codec": confidence_gains(model, encoded, LIMIT, CODEC, seed=0),
        },
        *find_overlap(texts, training),
    )


def find_overlap(texts: Sequence[str], training: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return the share of the n-grams of each text in a corpus file of the training texts, and in the other texts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "training.jsonl"
        path.write_text("\n".join(json.dumps({"text": text}) for text in training))
        index = NgramIndex([split_texts([text], "words") for text in texts], NGRAM.n)
        search = Search(index, "words")
        search.add(read_pieces(path, NGRAM), str)
    n = NGRAM.n[0]
    counts = count_texts(index.keys[n], index.num_keys(n))
    in_corpus = search.places().first[n] != NOWHERE
    return share_found(index.keys[n], counts == 1, in_corpus), share_found(index.keys[n], counts > 0, counts > 1)


def score_orders(model: LanguageModel, texts: Sequence[str], permutations: int) -> Orders:
    """Score the published order and random orders of shards of texts."""
    shards = make_shards(len(texts), NUM_SHARDS, permutations, [0])
    encoded = encode(model, [f"{text}\n" for text in texts])
    scores = []
    for shard in shards:
        ids = encoded[shard.first : shard.first + len(shard.orders[0])]
        sequences = [[token for row in order for token in ids[row]] for order in shard.orders]
        scores.append(log_likelihoods(model, sequences, LIMIT, LIMIT // 2, 16384))
    similarities = [word_similarity(texts[shard.first : shard.first + len(shard.orders[0])]) for shard in shards]
    return Orders(np.array(scores), neighbor_scores(shards, similarities))


if __name__ == "__main__":
    main()
