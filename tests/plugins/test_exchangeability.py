"""Contamination: shards and orders, their test, likelihoods, and models with known acquaintance of the texts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

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
from peekbench.testing import check_module_light
from peekbench_lm.likelihood import log_likelihoods, windows
from peekbench_lm.model import LanguageModel
from peekbench_lm.pretraining import pretrain
from peekbench_lm.training import Recipe
from peekbench_prompting.exchangeability import Exchangeability, exchangeability, pin_models, prefetch_models
from peekbench_prompting.findings import NONE, PREFERS, SUSPECT
from peekbench_prompting.orders import compare, make_shards, neighbor_scores, same_label, shared_words

CPU = torch.device("cpu")
torch.set_num_threads(1)
WORDS = (
    *("engine", "pump", "pressure", "full"),
    *("rabbit", "clover", "spring", "field"),
    *("minister", "law", "vote", "orchestra"),
)


# The test


def test_shards_are_neighbors_and_their_orders_are_permutations() -> None:
    shards = make_shards(23, 5, 40, [1])
    assert [shard.first for shard in shards] == [0, 5, 10, 15, 19]
    for shard in shards:
        size = len(shard.orders[0])
        assert len(shard.orders) == 41
        assert shard.orders[0].tolist() == list(range(size))
        assert all(sorted(order.tolist()) == list(range(size)) for order in shard.orders)
        assert len({tuple(order) for order in shard.orders}) > 10
    again, other = make_shards(23, 5, 40, [1]), make_shards(23, 5, 40, [2])
    assert all((one.orders[1] == two.orders[1]).all() for one, two in zip(shards, again, strict=True))
    assert any((one.orders[1] != two.orders[1]).any() for one, two in zip(shards, other, strict=True))


def test_the_t_test_is_that_of_the_differences() -> None:
    """Differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t = 2 sqrt(3) with 2 degrees of freedom."""
    scores = np.array([[1.0, 1.0, -1.0], [5.0, 3.0, 3.0], [0.0, -4.0, -2.0]])
    found = compare(scores, [0])
    assert found.difference == pytest.approx(2)
    t = 2 * math.sqrt(3)
    assert found.p_t == pytest.approx(0.5 - t / (2 * math.sqrt(2 + t**2)))  # Student's distribution with 2 degrees


def test_the_exact_test_counts_totals_as_high() -> None:
    scores = np.array([[3.0, 1.0, 2.0], [7.0, 9.0, 7.0], [0.5, 0.0, 0.1]])
    totals = [sum(chosen) for chosen in itertools.product(*scores)]
    wanted = sum(total >= scores[:, 0].sum() for total in totals) / len(totals)
    assert compare(scores, [0]).p_exact == pytest.approx(wanted, abs=0.01)


def test_scores_without_spread_show_nothing() -> None:
    found = compare(np.full((6, 11), -300.0), [0])
    assert (found.difference, found.p_t, found.p_exact) == (0, None, 1)


def test_exchangeable_scores_are_rejected_as_often_as_promised() -> None:
    """Shards whose scores differ in size and spread, and have heavy tails; 1,000 repeats."""
    generator = np.random.default_rng(3)
    by_t, exact = [], []
    for repeat in range(1000):
        spread = generator.gamma(1.0, size=(20, 1))
        found = compare(-500 * spread + spread * generator.standard_t(3, size=(20, 21)), [repeat])
        by_t.append(found.p_t)
        exact.append(found.p_exact)
    for level in (0.01, 0.05, 0.2):
        error = 3.3 * math.sqrt(level * (1 - level) / 1000)
        assert abs(np.mean(np.array(exact) <= level) - level) < error
        assert np.mean(np.array(by_t) <= level) < level + error


def test_a_small_preference_in_every_shard_is_found() -> None:
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(50, 51))
    scores[:, 0] += 0.8
    found = compare(scores, [0])
    assert found.p_t is not None
    assert max(found.p_t, found.p_exact) < 0.001
    scores[:, 0] -= 1.6
    assert compare(scores, [0]).p_exact > 0.99, "only a preference for the published order counts"


def test_neighbors_are_as_alike_as_their_words_and_labels() -> None:
    (shard,) = make_shards(3, 1, 6, [0])
    words = shared_words(["a b", "B c", "x"])
    assert words.tolist() == [[1, 1 / 3, 0], [1 / 3, 1, 0], [0, 0, 1]]
    scores = neighbor_scores([shard], [words])
    for order, score in zip(shard.orders, scores[0], strict=True):
        middle = order.tolist()[1]
        assert score == pytest.approx(0 if middle == 2 else 1 / 3)
    assert same_label([1, 0, 1]).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


# Likelihoods


@pytest.mark.parametrize(("length", "room", "stride"), [(1, 8, 4), (8, 8, 4), (9, 8, 4), (40, 8, 3), (41, 8, 8)])
def test_windows_score_each_token_once_behind_enough_others(length: int, room: int, stride: int) -> None:
    cover = windows(length, room, stride)
    scored = [token for window in cover for token in range(window.end - window.num_scored, window.end)]
    assert scored == list(range(length))
    assert all(window.end - window.start == min(room, length) for window in cover)
    assert all(window.end - window.num_scored - window.start >= room - stride for window in cover[1:])


@pytest.fixture(scope="module", params=["gpt2", "gpt_neox", "llama", "mistral"])
def any_causal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel(save_model(request.param, tmp_path_factory.mktemp(request.param)), CPU)


@torch.no_grad()
def plain(model: LanguageModel, read: Sequence[int], num_scored: int) -> float:
    """Sum of log probabilities of the last tokens of one text, by the network as transformers has it."""
    network = model.network
    kept = network.config._attn_implementation
    network.set_attn_implementation("eager")
    said = log_softmax(network.eval()(torch.tensor([read])).logits[0].double(), -1)
    network.set_attn_implementation(kept)
    return sum(said[place - 1, read[place]].item() for place in range(len(read) - num_scored, len(read)))


@pytest.mark.parametrize("batch_tokens", [1, 100, 10000])
def test_likelihoods_are_those_of_the_plain_computation(any_causal: LanguageModel, batch_tokens: int) -> None:
    generator = np.random.default_rng(0)
    sequences = [generator.integers(5, 300, size=size).tolist() for size in (20, 31, 45, 70)]
    first = any_causal.tokenizer.bos_token_id
    found = log_likelihoods(any_causal, sequences, 32, 16, batch_tokens)
    for sequence, likelihood in zip(sequences, found, strict=True):
        wanted, done = 0.0, 0
        while done < len(sequence):  # 31 tokens behind the first one, then 16 more each time
            end = min(done + 16, len(sequence)) if done else min(31, len(sequence))
            wanted += plain(any_causal, [first, *sequence[max(0, end - 31) : end]], end - done)
            done = end
        assert likelihood == pytest.approx(wanted, rel=1e-5)


def test_a_model_without_a_first_token_leaves_the_first_one_out(any_causal: LanguageModel) -> None:
    sequence = list(range(7, 20))
    kept = any_causal.tokenizer.bos_token
    any_causal.tokenizer.bos_token = None
    try:
        (found,) = log_likelihoods(any_causal, [sequence], 32, 16, 100)
    finally:
        any_causal.tokenizer.bos_token = kept
    assert found == pytest.approx(plain(any_causal, sequence, len(sequence) - 1), rel=1e-5)


# Models that have seen the texts, and others


def make_texts(number: int, seed: int) -> list[str]:
    """Texts of five words, exchangeable because each is drawn by itself."""
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=5)) for _ in range(number)]


def make_dataset(texts: Sequence[str], labels: Sequence[int] | None = None) -> Dataset:
    return Dataset(texts, labels or np.random.default_rng(9).integers(0, 2, len(texts)), ("no", "yes"))


def make_related_texts(number: int, seed: int) -> list[str]:
    """Texts of five words on one subject, which four texts in a row share."""
    generator = np.random.default_rng(seed)
    subjects = np.repeat(generator.integers(0, 3, number // 4 + 1), 4)
    return [" ".join(generator.choice(WORDS[4 * subject : 4 * subject + 4], size=5)) for subject in subjects[:number]]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("llama", tmp_path_factory.mktemp("untouched"), dropout=0.0, width=64)


@pytest.fixture(scope="module")
def train_on(untouched: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Train the small model on rows, one after the other, again and again."""

    @cache
    def train(rows: tuple[str, ...], epochs: int = 60) -> Path:
        model = LanguageModel(untouched, CPU)
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


def ask(model: Path, tasks: Mapping[str, Dataset], seed: int = 0, **options: Any) -> Analysis:
    chosen = Exchangeability(model=str(model), **{**OPTIONS, **options})
    return exchangeability(tasks, options=chosen, context=Context(seed, 1, Folders(Path(), Path())))


def cell(found: Analysis, name: str, table: int = 0, row: int = 0) -> Any:
    columns = [column.name for column in found.tables[table].columns]
    return found.tables[table].rows[row][columns.index(name)]


def test_a_model_trained_on_the_published_order_is_found_out(train_on: Any) -> None:
    texts = make_texts(160, 0)
    found = ask(train_on(tuple(texts)), {"seen": make_dataset(texts)})
    assert cell(found, "p, t test") < 1e-4
    assert cell(found, "p, exact") < 0.001
    assert cell(found, "gain, nats a text") > 0.1
    assert cell(found, "finding") == PREFERS
    assert found.warnings == ()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_model_trained_on_another_order_is_not(train_on: Any, seed: int) -> None:
    texts = make_texts(160, 0)
    shuffled = np.random.default_rng(seed).permutation(texts).tolist()
    found = ask(train_on(tuple(texts)), {"shuffled": make_dataset(shuffled)})
    assert cell(found, "p, exact") > 0.01
    assert cell(found, "p, t test") > 0.01
    assert cell(found, "finding") == NONE


def test_an_untouched_model_prefers_no_order(untouched: Path) -> None:
    found = ask(untouched, {f"task {seed}": make_dataset(make_texts(100, seed)) for seed in range(5)})
    assert {row[-1] for row in found.tables[0].rows} == {NONE}
    assert min(cell(found, "p, exact", row=row) for row in range(5)) > 0.01


def test_a_model_that_has_never_seen_texts_may_prefer_an_order_in_which_neighbors_are_alike(train_on: Any) -> None:
    """What the test takes for granted fails here: the audit has to notice."""
    model = train_on(tuple(make_related_texts(400, 0)), epochs=8)
    unseen = make_related_texts(160, 1)
    found = ask(model, {"related": make_dataset(unseen)})
    assert cell(found, "p, exact") < 0.001
    assert cell(found, "p, words of neighbors", 1) < 0.001
    assert cell(found, "finding") == SUSPECT
    assert "The order of related is not random" in found.warnings[0]
    at_random = np.random.default_rng(0).permutation(unseen).tolist()
    assert cell(ask(model, {"shuffled": make_dataset(at_random)}), "finding") == NONE


def test_labels_in_stretches_are_noticed(untouched: Path) -> None:
    found = ask(untouched, {"runs": make_dataset(make_texts(160, 0), [row // 3 % 2 for row in range(160)])})
    assert cell(found, "p, labels of neighbors", 1) < 0.001
    assert "The order of runs is not random" in found.warnings[0]


def test_a_reference_that_prefers_the_order_too_makes_it_inconclusive(train_on: Any, untouched: Path) -> None:
    texts = make_texts(160, 0)
    trained = train_on(tuple(texts))
    tasks = {"seen": make_dataset(texts)}
    assert cell(ask(trained, tasks, reference=str(trained)), "finding") == SUSPECT
    found = ask(trained, tasks, reference=str(untouched))
    assert cell(found, "finding") == PREFERS
    assert cell(found, f"p, {untouched}", 1) > 0.01


def test_equal_texts_make_no_difference(untouched: Path) -> None:
    found = ask(untouched, {"equal": make_dataset(["the same words"] * 60)})
    assert cell(found, "gain, nats a text") == 0
    assert cell(found, "p, t test") is None
    assert cell(found, "p, exact") == 1
    assert cell(found, "repeated", 1) == pytest.approx(59 / 60)


def test_the_same_seed_gives_the_same_numbers_whatever_other_tasks_there_are(untouched: Path) -> None:
    tasks = {name: make_dataset(make_texts(50, number)) for number, name in enumerate("ab")}
    both, alone = ask(untouched, tasks), ask(untouched, {"b": tasks["b"]})
    assert both.tables[0].rows[1][:6] == alone.tables[0].rows[0][:6]
    assert cell(alone, "p, exact") != cell(ask(untouched, {"b": tasks["b"]}, seed=1), "p, exact")


def test_only_the_first_texts_are_read_and_rows_look_as_asked(untouched: Path) -> None:
    texts, labels = make_texts(300, 0), [row % 2 for row in range(300)]
    other = [*texts[:100], *make_texts(200, 9)]
    found = ask(untouched, {"a": make_dataset(texts)}, max_texts=100)
    assert cell(found, "texts") == 100
    assert found.tables[0].rows == ask(untouched, {"a": make_dataset(other)}, max_texts=100).tables[0].rows
    by_hand = [
        f"{label} yes {text}\n" if label else f"{label} no {text}\n" for text, label in zip(texts, labels, strict=True)
    ]
    one = ask(untouched, {"a": make_dataset(texts, labels)}, row="{label} {class_name} {text}\n")
    assert cell(one, "gain, nats a text") == cell(
        ask(untouched, {"a": make_dataset(by_hand, labels)}, row="{text}"), "gain, nats a text"
    )


def test_a_context_below_two_texts_is_told(untouched: Path) -> None:
    long = [" ".join([text] * 8) for text in make_texts(60, 0)]
    (warning,) = ask(untouched, {"long": make_dataset(long)}).warnings
    assert "reads 64 tokens at once, less than two typical texts of long" in warning


def test_what_cannot_be_audited_is_refused_before_any_work(untouched: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="task a: 30 texts, but 20 shards of two texts at least take 40; lower `sh"):
        ask(untouched, {"a": make_dataset(make_texts(30, 0))})
    with pytest.raises(DataError, match="lower `shards`, or raise `max_texts`"):
        ask(untouched, {"a": make_dataset(make_texts(60, 0))}, max_texts=30)
    with pytest.raises(DataError, match="task a: its inputs are no texts"):
        ask(untouched, {"a": Dataset(np.zeros((60, 2)), np.zeros(60), kind="regression")})
    with pytest.raises(DataError, match="fills in masked tokens"):
        ask(save_model("bert", tmp_path), {"a": make_dataset(make_texts(60, 0))})
    for row in ("no field", "{text} {other}", "{text", "{label}"):
        with pytest.raises(SpecError, match="row"):
            make_component(AuditSpec, "prompting.exchangeability", {"model": "gpt2", "row": row})


def test_the_command_audits_a_specs_tasks(untouched: Path, make_raw: Any) -> None:
    audit = {"use": "prompting.exchangeability", "options": {"model": str(untouched), **OPTIONS, "max_texts": 60}}
    Path("audited.yaml").write_text(yaml.safe_dump(make_raw(audits=[audit])))
    done = CliRunner().invoke(app, ["audit", "audited.yaml"])
    assert done.exit_code == 0, done.output
    report = Path("reports/small/audits/report.md").read_text()
    assert "prefer the order in which texts were published" in report
    assert "sha256" in report


def test_models_are_pinned_and_described(untouched: Path) -> None:
    options = Exchangeability(model=str(untouched), reference=str(untouched))
    folders = Folders(Path(), Path())
    assert pin_models(options=options, folders=folders) == {}
    known = prefetch_models(options=options, folders=folders)
    assert known["sha256"] == known["reference"]["sha256"] != {}


def test_importing_it_is_light() -> None:
    check_module_light("peekbench_prompting.exchangeability")
