"""The audits `min_k` and `codec`: scores of texts, and findings about models that have seen texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import save_model
from torch.nn.functional import log_softmax

from peekbench import Analysis, Context, DataError, Dataset, Folders
from peekbench.errors import SpecError
from peekbench.spec.components import AuditSpec, make_component
from peekbench_exposure.findings import EXPOSED, NO_EXPOSURE
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import score_tokens
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import pretrain
from peekbench_prompting.audit_options import Codec, MinK
from peekbench_prompting.membership import (
    NOTHING_TO_COMPARE,
    SEPARATOR,
    codec,
    confidence_gains,
    lowest_mean,
    min_k,
    score_min_k,
)

CPU = torch.device("cpu")
torch.set_num_threads(1)
WORDS = (
    "engine",
    "pump",
    "pressure",
    "full",
    "rabbit",
    "clover",
    "spring",
    "field",
    "minister",
    "law",
    "vote",
    "violin",
)


def make_texts(number: int, seed: int, words: Sequence[str] = WORDS) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(words, size=8)) for _ in range(number)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("llama", tmp_path_factory.mktemp("untrained"), dropout=0.0, width=64)


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return LanguageModel(folder, CPU)


@torch.no_grad()
def reference_table(model: LanguageModel, ids: Sequence[int]) -> Any:
    """Return the log probabilities of all words after each token, computed with transformers alone."""
    with model.default_attention():
        return log_softmax(model.network.eval()(torch.tensor([ids])).logits[0].double(), -1)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("has_linear_head", [True, False])
def test_scores_of_tokens_match_the_reference(name: str, has_linear_head: bool, tmp_path: Path) -> None:
    model = LanguageModel(save_model(name, tmp_path), CPU)
    model._has_linear_head = has_linear_head
    generator = np.random.default_rng(0)
    texts = [generator.integers(5, 300, size=size).tolist() for size in (9, 2, 30, 17)]
    plain, standardized = (score_tokens(model, texts, 3, "fp32", standardized=flag) for flag in (False, True))
    for ids, log_probabilities, scores in zip(texts, plain, standardized, strict=True):
        table = reference_table(model, ids)[:-1]
        expected = table.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        mean = (table.exp() * table).sum(1)
        deviation = ((table.exp() * table**2).sum(1) - mean**2).sqrt()
        assert log_probabilities == pytest.approx(expected.numpy(), rel=1e-5)
        assert scores == pytest.approx(((expected - mean) / deviation).numpy(), abs=1e-3)


def test_min_k_is_the_mean_of_the_least_likely_tokens(model: LanguageModel) -> None:
    encoded = [[7, 8, 9, 10, 11, 12, 13, 14, 15, 16], [], list(range(20, 60))]
    scores = score_min_k(model, encoded, 21, MinK(model="m", k=0.3))
    first = model.tokenizer.bos_token_id
    for ids, score in zip(encoded, scores, strict=True):
        cut = [first, *ids][:21]
        table = reference_table(model, cut)
        expected = sorted(table[place, token].item() for place, token in enumerate(cut[1:]))
        number = int(0.3 * len(expected))
        assert score == pytest.approx(np.mean(expected[:number]) if ids else np.nan, rel=1e-5, nan_ok=True)
    assert lowest_mean(np.array([-2.0, -1.0]), 0.1) == -2


def test_confidence_gains_compare_texts_with_and_without_examples(model: LanguageModel) -> None:
    encoded = [np.random.default_rng(seed).integers(5, 300, size=6 + seed).tolist() for seed in range(5)]
    gains = confidence_gains(model, encoded, 64, Codec(model="m", examples=2), seed=3)
    order = np.random.default_rng([3, 5]).permutation(5).tolist()
    first, separator = model.tokenizer.bos_token_id, model.tokenizer(SEPARATOR, add_special_tokens=False)["input_ids"]

    def mean_log_probability(prefix: list[int], ids: list[int]) -> float:
        table = reference_table(model, [*prefix, *ids])
        return float(np.mean([table[len(prefix) + place - 1, token].item() for place, token in enumerate(ids)]))

    for row, ids in enumerate(encoded):
        place = order.index(row)
        neighbors = [order[(place + step) % 5] for step in (1, 2)]
        context = [first, *(token for neighbor in neighbors for token in (*encoded[neighbor], *separator))]
        expected = mean_log_probability(context, ids) - mean_log_probability([first], ids)
        assert gains[row] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(DataError, match="set `examples` to at most 4"):
        confidence_gains(model, encoded, 64, Codec(model="m", examples=5), seed=3)
    assert len(confidence_gains(model, encoded, 64, Codec(model="m", examples=4), seed=3)) == 5
    long = confidence_gains(model, [list(range(5, 105)), list(range(5, 105))], 64, Codec(model="m"), seed=0)
    assert np.isfinite(long).all(), "texts and examples that are longer than the context are cut"


# Findings


def audit(
    run: Callable[..., Analysis], options: Any, tasks: dict[str, list[str]], splits: Sequence[Any] = ()
) -> Analysis:
    datasets = {name: Dataset(texts, [0] * len(texts), splits=splits) for name, texts in tasks.items()}
    return run(datasets, options=options, context=Context(1, 1, Folders(Path(), Path())))


def findings(analysis: Analysis) -> list[Any]:
    return [row[-1] for row in analysis.tables[0].rows]


SEEN, UNSEEN = make_texts(60, 0), make_texts(60, 1)


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was trained on the first texts, and on others of the same kind, some of them in pairs."""
    model = LanguageModel(folder, CPU)
    pairs = [SEPARATOR.join(pair) for pair in zip(make_texts(300, 8), make_texts(300, 9), strict=True)]
    texts = [
        *SEEN * 24,  # so often that the finding does not depend on rounding
        *make_texts(100, 10),
        *pairs,
    ]
    torch.manual_seed(0)
    encoded = model.tokenizer(texts, verbose=False)["input_ids"]
    pretrain(model, encoded, Recipe(6, 16, 5e-3, "linear", 0.0, 1.0), 0.15, seed=0)
    saved = tmp_path_factory.mktemp("trained")
    model.tokenizer.save_pretrained(saved)
    model.network.save_pretrained(saved)
    return saved


@pytest.mark.slow
@pytest.mark.parametrize("score", ["min_k", "min_k_plus_plus"])
def test_min_k_finds_texts_that_the_model_has_seen(trained: Path, folder: Path, score: Any) -> None:
    tasks = {"seen": SEEN, "not_seen": make_texts(60, 2), "unseen": UNSEEN}
    options = MinK(model=str(trained), unseen="unseen", score=score)
    assert findings(audit(min_k, options, tasks)) == [EXPOSED, NO_EXPOSURE]
    with_reference = options.model_copy(update={"reference": str(folder)})
    analysis = audit(min_k, with_reference, tasks)
    assert findings(analysis) == [EXPOSED, NO_EXPOSURE]
    assert [column.name for column in analysis.tables[1].columns][-1] == "p, difficulty"
    untrained = MinK(model=str(folder), unseen="unseen", score=score)
    assert findings(audit(min_k, untrained, tasks)) == [NO_EXPOSURE] * 2


@pytest.mark.slow
def test_codec_finds_texts_that_the_model_has_seen(trained: Path, folder: Path) -> None:
    tasks = {"seen": SEEN, "unseen": UNSEEN}
    analysis = audit(codec, Codec(model=str(trained), unseen="unseen"), tasks)
    (row,) = analysis.tables[0].rows
    seen, unseen = map(str, row[3:5])
    assert float(seen) > float(unseen) + 0.2, "more of the seen texts lose confidence"
    assert row[-1] == EXPOSED
    assert findings(audit(codec, Codec(model=str(folder), unseen="unseen"), tasks)) == [NO_EXPOSURE]


def test_without_unseen_texts_every_finding_is_inconclusive(folder: Path) -> None:
    for run, options in ((min_k, MinK(model=str(folder))), (codec, Codec(model=str(folder)))):
        analysis = audit(run, options, {"a": SEEN[:12]})
        assert findings(analysis) == [NOTHING_TO_COMPARE]
        assert "Name a task with such texts in `unseen`" in analysis.warnings[0]


@pytest.mark.slow
def test_a_shift_makes_a_finding_inconclusive(trained: Path) -> None:
    """The model was trained on other texts of these words, which makes both tasks easier than texts of other words."""
    tasks = {"easy": make_texts(60, 3), "hard": make_texts(60, 4, ["melody", "violins", "broken", *WORDS[:3]])}
    (finding,) = findings(audit(min_k, MinK(model=str(trained), unseen="hard"), tasks))
    assert finding.startswith("inconclusive: the unseen texts differ in words")


def test_a_split_can_be_unseen_and_common_texts_are_left_out(folder: Path) -> None:
    splits = ["train"] * 20 + ["test"] * 20
    options = MinK(model=str(folder), unseen_split="train", max_texts=12)
    analysis = audit(min_k, options, {"a": [*SEEN[:20], *UNSEEN[:19], SEEN[0]]}, splits)
    assert analysis.tables[0].rows[0][1:3] == (12, 12)
    assert "left out: a (1)" in analysis.warnings[0]


def test_texts_without_a_token_to_score_are_left_out(folder: Path) -> None:
    tasks = {"a": ["", *SEEN[:12], ""], "b": UNSEEN[:12]}
    for run, options in (
        (min_k, MinK(model=str(folder), reference=str(folder), unseen="b")),
        (codec, Codec(model=str(folder), unseen="b")),
    ):
        analysis = audit(run, options, tasks)
        assert analysis.tables[0].rows[0][1:3] == (12, 12)
        assert "no token to score and were left out: a (2)" in analysis.warnings[0]
    with_empty, without = (
        audit(min_k, MinK(model=str(folder), unseen="b"), {**tasks, "a": texts}) for texts in (tasks["a"], SEEN[:12])
    )
    assert with_empty.tables == without.tables
    with pytest.raises(DataError, match=r"task a: 5 texts \(without 12 that have no token to score\)"):
        audit(min_k, MinK(model=str(folder)), {"a": [*[""] * 12, *SEEN[:5]]})


def test_unsuitable_tasks_and_options_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="task a: 5 texts, but the audit needs at least 10"):
        audit(min_k, MinK(model=str(folder)), {"a": SEEN[:5]})
    with pytest.raises(DataError, match="task a: 2 unseen texts"):
        audit(min_k, MinK(model=str(folder), unseen="b"), {"a": SEEN, "b": UNSEEN[:2]})
    with pytest.raises(SpecError, match="fills in masked tokens"):
        audit(min_k, MinK(model=str(save_model("bert", tmp_path))), {"a": SEEN})
    with pytest.raises(SpecError, match="remove one"):
        make_component(AuditSpec, "prompting.min_k", {"model": "m", "unseen": "a", "unseen_split": "test"})


def test_results_depend_on_the_seed_of_examples_alone(folder: Path) -> None:
    options, tasks = Codec(model=str(folder), unseen="b"), {"a": SEEN[:20], "b": UNSEEN[:20]}
    assert repr(audit(codec, options, tasks)) == repr(audit(codec, options, tasks))
