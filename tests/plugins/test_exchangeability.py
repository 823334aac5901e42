"""The exchangeability audit: shards and orders, tests, likelihoods, and models trained on known texts."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
import yaml
from small_models import save_model
from torch.nn.functional import log_softmax
from typer.testing import CliRunner

from peekbench import Analysis, Context, DataError, Dataset, Folders
from peekbench.cli.app import app
from peekbench.errors import SpecError
from peekbench.spec.components import AuditSpec, make_component
from peekbench_exposure.findings import EXPOSED, NO_EXPOSURE
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import log_likelihoods, make_windows
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import pretrain
from peekbench_prompting.audit_options import Exchangeability
from peekbench_prompting.exchangeability import (
    NOT_RANDOM,
    compare_orders,
    exchangeability,
    label_similarity,
    make_shards,
    neighbor_scores,
    word_similarity,
)
from peekbench_prompting.provision import pin_models, prefetch_models

CPU = torch.device("cpu")
torch.set_num_threads(1)
WORDS = (
    *("engine", "pump", "pressure", "full"),
    *("rabbit", "clover", "spring", "field"),
    *("minister", "law", "vote", "orchestra"),
)


# Tests of orders


def test_shards_are_consecutive_rows_and_orders_are_permutations() -> None:
    shards = make_shards(23, 5, 40, [1])
    assert [shard.first for shard in shards] == [0, 5, 10, 15, 19]
    for shard in shards:
        size = len(shard.orders[0])
        assert len(shard.orders) == 41
        assert shard.orders[0].tolist() == list(range(size))
        assert all(sorted(order.tolist()) == list(range(size)) for order in shard.orders)
        assert len({tuple(order) for order in shard.orders}) > 10
    again, other = make_shards(23, 5, 40, [1]), make_shards(23, 5, 40, [2])
    assert all((first.orders[1] == second.orders[1]).all() for first, second in zip(shards, again, strict=True))
    assert any((first.orders[1] != second.orders[1]).any() for first, second in zip(shards, other, strict=True))


def test_the_t_test_compares_differences_with_zero() -> None:
    """The differences 1, 2, 3 have mean 2 and standard error 1/sqrt(3), so t = 2 sqrt(3) with 2 degrees of freedom."""
    scores = np.array([[1.0, 1.0, -1.0], [5.0, 3.0, 3.0], [0.0, -4.0, -2.0]])
    preference = compare_orders(scores, [0])
    assert preference.difference == pytest.approx(2)
    t = 2 * math.sqrt(3)
    assert preference.p_t == pytest.approx(
        0.5 - t / (2 * math.sqrt(2 + t**2))
    )  # t distribution with 2 degrees of freedom


def test_the_exact_test_counts_totals_at_least_as_high() -> None:
    scores = np.array([[3.0, 1.0, 2.0], [7.0, 9.0, 7.0], [0.5, 0.0, 0.1]])
    totals = [sum(chosen) for chosen in itertools.product(*scores)]
    expected = sum(total >= scores[:, 0].sum() for total in totals) / len(totals)
    assert compare_orders(scores, [0]).p_exact == pytest.approx(expected, abs=0.01)


def test_constant_scores_show_no_preference() -> None:
    preference = compare_orders(np.full((6, 11), -300.0), [0])
    assert (preference.difference, preference.p_t, preference.p_exact) == (0, None, 1)


@pytest.mark.simulation
def test_exchangeable_scores_are_rejected_at_the_nominal_rate() -> None:
    """Scores have heavy tails, and a different location and scale in each shard; 1,000 repeats."""
    generator = np.random.default_rng(3)
    by_t, exact = [], []
    for repeat in range(1000):
        spread = generator.gamma(1.0, size=(20, 1))
        preference = compare_orders(-500 * spread + spread * generator.standard_t(3, size=(20, 21)), [repeat])
        by_t.append(preference.p_t)
        exact.append(preference.p_exact)
    for level in (0.01, 0.05, 0.2):
        error = 3.3 * math.sqrt(level * (1 - level) / 1000)
        assert abs(np.mean(np.array(exact) <= level) - level) < error
        assert np.mean(np.array(by_t) <= level) < level + error


def test_a_small_preference_in_every_shard_is_detected() -> None:
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(50, 51))
    scores[:, 0] += 0.8
    preference = compare_orders(scores, [0])
    assert preference.p_t is not None
    assert max(preference.p_t, preference.p_exact) < 0.001
    scores[:, 0] -= 1.6
    assert compare_orders(scores, [0]).p_exact > 0.99, "only a preference for the published order counts"


def test_similarity_of_neighbors_by_words_and_labels() -> None:
    (shard,) = make_shards(3, 1, 6, [0])
    words = word_similarity(["a b", "B c", "x"])
    assert words.tolist() == [[1, 1 / 3, 0], [1 / 3, 1, 0], [0, 0, 1]]
    scores = neighbor_scores([shard], [words])
    for order, score in zip(shard.orders, scores[0], strict=True):
        middle = order.tolist()[1]
        assert score == pytest.approx(0 if middle == 2 else 1 / 3)
    assert label_similarity([1, 0, 1]).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


# Likelihoods


@pytest.mark.parametrize(("length", "limit", "stride"), [(1, 8, 4), (8, 8, 4), (9, 8, 4), (40, 8, 3), (41, 8, 8)])
def test_windows_score_each_token_once_after_enough_context(length: int, limit: int, stride: int) -> None:
    cover = make_windows(length, limit, stride)
    scored = [token for window in cover for token in range(window.end - window.num_scored, window.end)]
    assert scored == list(range(length))
    assert all(window.end - window.start == min(limit, length) for window in cover)
    assert all(window.end - window.num_scored - window.start >= limit - stride for window in cover[1:])


@pytest.fixture(scope="module", params=["gpt2", "gpt_neox", "llama", "mistral"])
def any_causal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel(save_model(request.param, tmp_path_factory.mktemp(request.param)), CPU)


@torch.no_grad()
def reference_likelihood(model: LanguageModel, ids: Sequence[int], num_scored: int) -> float:
    """Sum the log probabilities of the last tokens of one text, computed with transformers alone."""
    network = model.network
    implementation = network.config._attn_implementation
    network.set_attn_implementation("eager")
    log_probabilities = log_softmax(network.eval()(torch.tensor([ids])).logits[0].double(), -1)
    network.set_attn_implementation(implementation)
    return sum(
        log_probabilities[position - 1, ids[position]].item() for position in range(len(ids) - num_scored, len(ids))
    )


@pytest.mark.parametrize("batch_tokens", [1, 100, 10000])
def test_likelihoods_match_the_reference_implementation(any_causal: LanguageModel, batch_tokens: int) -> None:
    generator = np.random.default_rng(0)
    sequences = [generator.integers(5, 300, size=size).tolist() for size in (20, 31, 45, 70)]
    first = any_causal.tokenizer.bos_token_id
    likelihoods = log_likelihoods(any_causal, sequences, 32, 16, batch_tokens)
    for sequence, likelihood in zip(sequences, likelihoods, strict=True):
        expected, done = 0.0, 0
        while done < len(sequence):  # 31 tokens after the special token, then 16 per window
            end = min(done + 16, len(sequence)) if done else min(31, len(sequence))
            expected += reference_likelihood(any_causal, [first, *sequence[max(0, end - 31) : end]], end - done)
            done = end
        assert likelihood == pytest.approx(expected, rel=1e-5)


def test_a_model_without_a_start_token_does_not_score_the_first_token(any_causal: LanguageModel) -> None:
    sequence = list(range(7, 20))
    start_token = any_causal.tokenizer.bos_token
    any_causal.tokenizer.bos_token = None
    try:
        (likelihood,) = log_likelihoods(any_causal, [sequence], 32, 16, 100)
    finally:
        any_causal.tokenizer.bos_token = start_token
    assert likelihood == pytest.approx(reference_likelihood(any_causal, sequence, len(sequence) - 1), rel=1e-5)


# Models that have seen the texts, and models that have not


def make_texts(number: int, seed: int) -> list[str]:
    """Draw texts of five words independently, so that they are exchangeable."""
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=5)) for _ in range(number)]


def make_dataset(texts: Sequence[str], labels: Sequence[int] | None = None) -> Dataset:
    return Dataset(texts, labels or np.random.default_rng(9).integers(0, 2, len(texts)), ("no", "yes"))


def make_related_texts(number: int, seed: int) -> list[str]:
    """Draw texts of five words; every four consecutive texts share a subject."""
    generator = np.random.default_rng(seed)
    subjects = np.repeat(generator.integers(0, 3, number // 4 + 1), 4)
    return [" ".join(generator.choice(WORDS[4 * subject : 4 * subject + 4], size=5)) for subject in subjects[:number]]


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("llama", tmp_path_factory.mktemp("untrained"), dropout=0.0, width=64)


@pytest.fixture(scope="module")
def train_on(untrained: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that trains the small model on consecutive rows for many epochs."""

    @cache
    def train(rows: tuple[str, ...], epochs: int = 60) -> Path:
        model = LanguageModel(untrained, CPU)
        flat = model.tokenizer("\n".join(rows), verbose=False)["input_ids"]
        stretches = [flat[start : start + 64] for start in range(0, len(flat) - 8, 24)]
        recipe = Recipe(epochs, 8, 1e-2, "linear", 0.0, 1.0)
        torch.manual_seed(0)
        pretrain(model, stretches, recipe, 0.15, seed=0)
        folder = tmp_path_factory.mktemp("trained")
        model.tokenizer.save_pretrained(folder)
        model.network.save_pretrained(folder)
        return folder

    return train


OPTIONS = {"shards": 20, "permutations": 20, "context_length": 64}


def audit(model: Path, tasks: Mapping[str, Dataset], seed: int = 0, **options: Any) -> Analysis:
    settings = Exchangeability(model=str(model), **{**OPTIONS, **options})
    return exchangeability(tasks, options=settings, context=Context(seed, 1, Folders(Path(), Path())))


def cell(analysis: Analysis, name: str, table: int = 0, row: int = 0) -> Any:
    columns = [column.name for column in analysis.tables[table].columns]
    return analysis.tables[table].rows[row][columns.index(name)]


@pytest.mark.slow
def test_a_model_trained_on_the_published_order_prefers_it(train_on: Any) -> None:
    texts = make_texts(160, 0)
    analysis = audit(train_on(tuple(texts)), {"seen": make_dataset(texts)})
    assert cell(analysis, "p, t test") < 1e-4
    assert cell(analysis, "p, exact") < 0.001
    assert cell(analysis, "gain, nats per text") > 0.1
    assert cell(analysis, "finding") == EXPOSED
    assert analysis.warnings == ()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_model_trained_on_another_order_has_no_preference(train_on: Any, seed: int) -> None:
    texts = make_texts(160, 0)
    shuffled = np.random.default_rng(seed).permutation(texts).tolist()
    analysis = audit(train_on(tuple(texts)), {"shuffled": make_dataset(shuffled)})
    assert cell(analysis, "p, exact") > 0.01
    assert cell(analysis, "p, t test") > 0.01
    assert cell(analysis, "finding") == NO_EXPOSURE


@pytest.mark.slow
def test_an_untrained_model_has_no_preference(untrained: Path) -> None:
    analysis = audit(untrained, {f"task {seed}": make_dataset(make_texts(100, seed)) for seed in range(5)})
    assert {row[-1] for row in analysis.tables[0].rows} == {NO_EXPOSURE}
    assert min(cell(analysis, "p, exact", row=row) for row in range(5)) > 0.01


@pytest.mark.slow
def test_a_preference_for_an_order_with_similar_neighbors_is_inconclusive(train_on: Any) -> None:
    """The rows are not exchangeable, so a model that has never seen the texts prefers their order."""
    model = train_on(tuple(make_related_texts(400, 0)), epochs=8)
    unseen = make_related_texts(160, 1)
    analysis = audit(model, {"related": make_dataset(unseen)})
    assert cell(analysis, "p, exact") < 0.001
    assert cell(analysis, "p, words of neighbors", 1) < 0.001
    assert cell(analysis, "finding") == NOT_RANDOM
    assert "The order of related is not random" in analysis.warnings[0]
    at_random = np.random.default_rng(0).permutation(unseen).tolist()
    assert cell(audit(model, {"shuffled": make_dataset(at_random)}), "finding") == NO_EXPOSURE


def test_runs_of_equal_labels_are_detected(untrained: Path) -> None:
    analysis = audit(untrained, {"runs": make_dataset(make_texts(160, 0), [row // 3 % 2 for row in range(160)])})
    assert cell(analysis, "p, labels of neighbors", 1) < 0.001
    assert "The order of runs is not random" in analysis.warnings[0]


@pytest.mark.slow
def test_a_reference_model_with_the_same_preference_makes_it_inconclusive(train_on: Any, untrained: Path) -> None:
    texts = make_texts(160, 0)
    trained = train_on(tuple(texts))
    tasks = {"seen": make_dataset(texts)}
    assert cell(audit(trained, tasks, reference=str(trained)), "finding") == NOT_RANDOM
    analysis = audit(trained, tasks, reference=str(untrained))
    assert cell(analysis, "finding") == EXPOSED
    assert cell(analysis, f"p, {untrained}", 1) > 0.01


def test_equal_texts_show_no_preference(untrained: Path) -> None:
    analysis = audit(untrained, {"equal": make_dataset(["the same words"] * 60)})
    assert cell(analysis, "gain, nats per text") == 0
    assert cell(analysis, "p, t test") is None
    assert cell(analysis, "p, exact") == 1
    assert cell(analysis, "repeated", 1) == pytest.approx(59 / 60)


def test_results_of_a_task_depend_on_the_seed_but_not_on_other_tasks(untrained: Path) -> None:
    tasks = {name: make_dataset(make_texts(50, number)) for number, name in enumerate("ab")}
    both, alone = audit(untrained, tasks), audit(untrained, {"b": tasks["b"]})
    assert both.tables[0].rows[1][:6] == alone.tables[0].rows[0][:6]
    assert cell(alone, "p, exact") != cell(audit(untrained, {"b": tasks["b"]}, seed=1), "p, exact")


@pytest.mark.slow
def test_only_the_first_texts_are_read_and_rows_are_formatted(untrained: Path) -> None:
    texts, labels = make_texts(300, 0), [row % 2 for row in range(300)]
    other = [*texts[:100], *make_texts(200, 9)]
    analysis = audit(untrained, {"a": make_dataset(texts)}, max_texts=100)
    assert cell(analysis, "texts") == 100
    assert analysis.tables[0].rows == audit(untrained, {"a": make_dataset(other)}, max_texts=100).tables[0].rows
    by_hand = [
        f"{label} yes {text}\n" if label else f"{label} no {text}\n" for text, label in zip(texts, labels, strict=True)
    ]
    formatted = audit(untrained, {"a": make_dataset(texts, labels)}, row="{label} {class_name} {text}\n")
    assert cell(formatted, "gain, nats per text") == cell(
        audit(untrained, {"a": make_dataset(by_hand, labels)}, row="{text}"), "gain, nats per text"
    )


def test_a_context_shorter_than_two_texts_gives_a_warning(untrained: Path) -> None:
    long = [" ".join([text] * 8) for text in make_texts(60, 0)]
    (warning,) = audit(untrained, {"long": make_dataset(long)}).warnings
    assert re.search("64 tokens.*two typical texts of long", warning)


def test_unsuitable_tasks_models_and_options_are_refused(untrained: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="task a: 30 texts.*20 shards.*40; lower `shards`"):
        audit(untrained, {"a": make_dataset(make_texts(30, 0))})
    with pytest.raises(DataError, match="lower `shards`, or raise `max_texts`"):
        audit(untrained, {"a": make_dataset(make_texts(60, 0))}, max_texts=30)
    with pytest.raises(DataError, match="task a: .*not texts"):
        audit(untrained, {"a": Dataset(np.zeros((60, 2)), np.zeros(60), kind="regression")})
    with pytest.raises(SpecError, match="fills in masked tokens"):
        audit(save_model("bert", tmp_path), {"a": make_dataset(make_texts(60, 0))})
    for row in ("no field", "{text} {other}", "{text", "{label}"):
        with pytest.raises(SpecError, match="row"):
            make_component(AuditSpec, "prompting.exchangeability", {"model": "gpt2", "row": row})


@pytest.mark.slow
def test_the_command_audits_the_tasks_of_a_spec(untrained: Path, make_raw: Any) -> None:
    entry = {"use": "prompting.exchangeability", "options": {"model": str(untrained), **OPTIONS, "max_texts": 60}}
    Path("audited.yaml").write_text(yaml.safe_dump(make_raw(audits=[entry])))
    result = CliRunner().invoke(app, ["audit", "audited.yaml"])
    assert result.exit_code == 0, result.output
    report = Path("reports/small/audits/report.md").read_text()
    assert "prefer the order in which texts were published" in report
    assert "sha256" in report


def test_models_are_pinned_and_described(untrained: Path) -> None:
    options = Exchangeability(model=str(untrained), reference=str(untrained))
    folders = Folders(Path(), Path())
    assert pin_models(options=options, folders=folders) == {}
    description = prefetch_models(options=options, folders=folders)
    assert description["sha256"] == description["reference"]["sha256"] != {}
