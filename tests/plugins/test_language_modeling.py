"""Language modeling from the spec to the report, and the byte n-grams that need no optional library."""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from commands import run_command
from stored_scores import find_wrong_scores

from peekbench.results import load_results
from peekbench.spec.components import MethodSpec, make_component
from peekbench_testing import METHOD_CHECKS, Case, make_case, sample_texts
from peekbench_text_prediction.ngram import BOUNDARY, NUM_SYMBOLS

TEXTS = ("to be or not to be", "that is the question", "übermorgen 🙂", "")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Return `lm.ngram` on the texts of the contract checks."""
    spec = make_component(MethodSpec, "lm.ngram", {"order": 2})
    return make_case(spec.use, spec.entry, spec.options, tmp_path)


def test_contract(case: Case) -> None:
    for check in METHOD_CHECKS.values():
        check(case)
    assert set(case.fit(case.unlabeled).metrics) == set(case.entry.metrics)


def log_probability(text: str, texts: Sequence[str], order: int) -> float:
    """Compute the natural log probability of a text under interpolated n-grams, symbol by symbol."""

    def symbols(text: str) -> list[int]:
        return [BOUNDARY] * order + list(text.encode()) + [BOUNDARY]

    followers: dict[tuple[int, ...], Counter[int]] = {}
    for sequence in map(symbols, texts):
        for end in range(order, len(sequence)):
            for size in range(order + 1):
                followers.setdefault(tuple(sequence[end - size : end]), Counter())[sequence[end]] += 1

    def probability(symbol: int, context: tuple[int, ...]) -> float:
        shorter = probability(symbol, context[1:]) if context else 1 / NUM_SYMBOLS
        counts = followers.get(context)
        if counts is None:
            return shorter
        return (counts[symbol] + len(counts) * shorter) / (counts.total() + len(counts))

    sequence = symbols(text)
    return sum(
        math.log(probability(sequence[end], tuple(sequence[end - order : end]))) for end in range(order, len(sequence))
    )


@pytest.mark.parametrize("order", [0, 2, 6])
def test_ngrams_agree_with_the_formula(case: Case, order: int) -> None:
    spec = make_component(MethodSpec, "lm.ngram", {"order": order})
    predictor = case.fit(TEXTS[:2], options=spec.options)
    expected = [log_probability(text, [*case.train.inputs, *TEXTS[:2]], order) for text in TEXTS]
    np.testing.assert_allclose(predictor.predict(TEXTS), expected, rtol=1e-12)


@pytest.fixture
def results(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run `lm.ngram` on a file of texts without labels; return what the command printed."""
    texts = [json.dumps({"text": text}) for text in sample_texts(120).inputs]
    Path("notes.jsonl").write_text("\n".join(texts))
    Path("notes.yaml").write_text(
        "name: notes\n"
        "tasks: [{use: files, name: notes, options: {path: notes.jsonl, label: null}}]\n"
        "methods: [{use: lm.ngram, options: {order: 3}}]\n"
        "design: {num_train: 10, num_test: 20, num_subsamples: 8}\n"
        "analyses: [summary, permutation, power]\n"
        "executor: {use: local, options: {in_process: true}}\n"
    )
    return run_command("run", "notes.yaml")


def test_a_run_on_texts_without_labels(results: subprocess.CompletedProcess[str]) -> None:
    """The bias is large, in bits per byte, and the store, the report and the analysis of a table agree."""
    assert results.returncode == 0, results.stderr
    table = load_results("runs/notes.sqlite")
    assert (table["score"] == -table["bits_per_byte"]).all()
    means = table.groupby("arm")["bits_per_byte"].mean()
    assert means["test"] < means["extra"] - 0.3
    assert means["extra"] < means["base"]
    report = json.loads(Path("reports/notes/report.json").read_text())
    verdict = report["verdicts"][0]
    assert verdict["decision"] == "biased up"
    assert verdict["region"] == 0.01
    assert verdict["estimate"]["mean"] == pytest.approx(means["extra"] - means["test"])
    assert "raised the log-likelihood in bits per byte by" in verdict["sentence"]
    tables = {table["title"].split(" (")[0] for table in report["tables"]}
    assert "Permutation tests over these tasks in log-likelihood in bits per byte" in tables
    assert "Classes" not in tables
    assert find_wrong_scores(Path("runs/notes.sqlite")) == []
    table.drop(columns=["score", "num_correct"]).to_csv("mine.csv", index=False)
    analyzed = run_command("analyze", "mine.csv", "--full")
    assert "raised the log-likelihood in bits per byte by" in " ".join(analyzed.stdout.split()), analyzed.stdout
