"""Language models that are asked for classes: scores, and whole methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from prompted import INSTRUCTION, WHO, byte_level, task_of
from small_models import SENTENCES, save_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from peekbench import Dataset, Labeled, Task
from peekbench.data import render_prompt
from peekbench.errors import SpecError
from peekbench.records import FloatArray
from peekbench.spec.components import MethodSpec, make_component
from peekbench.spec.experiment import load_spec
from peekbench.testing import check_method, make_case
from peekbench.testing.case import Case
from peekbench_lm.model import LanguageModel
from peekbench_prompting.examples import Questions, choose_examples
from peekbench_prompting.options import FewShot, ZeroShot
from peekbench_prompting.prompts import Prompts
from peekbench_prompting.scoring import CONTENT_FREE

ROOT = Path(__file__).parents[2]
torch.set_num_threads(1)  # models this small are slower with more


# Scores


@pytest.fixture(scope="module", params=["gpt2", "llama", "mistral", "gpt_neox"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(request.param, tmp_path_factory.mktemp(request.param), positions=512)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("gpt2", tmp_path_factory.mktemp("gpt2"), positions=512)


def plainly(folder: Path, texts: Sequence[str], task: Task, normalization: str = "mean") -> FloatArray:
    """Class probabilities by one forward pass for each text and class, written with transformers alone."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    network: Any = AutoModelForCausalLM.from_pretrained(folder)
    network.eval()
    scores = np.empty((len(texts), task.num_classes))
    for row, text in enumerate(texts):
        prompt = render_prompt(text, task.class_names, task.instruction)
        whole = [tokenizer(f"{prompt} {name}")["input_ids"] for name in task.class_names]
        same = [len(set(tokens)) == 1 for tokens in zip(tokenizer(prompt)["input_ids"], *whole, strict=False)]
        stem = [*same, False].index(False)
        for label, ids in enumerate(whole):
            with torch.no_grad():
                said = network(torch.tensor([ids])).logits[0].double().log_softmax(-1)
            each = [said[place - 1, ids[place]].item() for place in range(stem, len(ids))]
            scores[row, label] = np.mean(each) if normalization == "mean" else np.sum(each)
    odds = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(odds / odds.sum(1, keepdims=True))


ABOUT_WHOM = Dataset(
    inputs=SENTENCES * 2,
    labels=np.array([row // 64 for row in range(256)] * 2),
    class_names=("an engine", "an engine that plays", "a rabbit", "the minister"),
    instruction=INSTRUCTION,
)


def case_of(use: str, folder: Path, tmp_path: Path, **options: Any) -> Case:
    spec = make_component(MethodSpec, use, {"model": str(folder), **options})
    return make_case(use, spec.entry, spec.options, tmp_path, ABOUT_WHOM)


@pytest.mark.parametrize("normalization", ["mean", "sum"])
def test_scores_are_those_of_the_plain_computation(normalization: str, folder: Path, tmp_path: Path) -> None:
    case = case_of("prompting.zero_shot", folder, tmp_path, scoring={"normalization": normalization, "batch_size": 4})
    texts = [*case.test[:7], case.test[0] * 3]
    found = case.fit(None).predict(texts)
    wanted = plainly(folder, texts, case.task, normalization)
    assert np.abs(np.log(found) - np.log(wanted)).max() < 1e-4
    assert np.ptp(wanted, axis=1).min() > 1e-3, "classes can be told apart"


@pytest.mark.parametrize("normalization", ["mean", "sum"])
def test_scores_of_stories_are_those_of_the_plain_computation(normalization: str, tmp_path: Path) -> None:
    folder = ROOT.parent / "shared" / "data" / "models" / "stories260K"
    if not folder.is_dir():
        pytest.skip("the model stories260K is not beside the repository")
    case = case_of("prompting.zero_shot", folder, tmp_path, scoring={"normalization": normalization})
    texts = list(case.test[:4])
    found = case.fit(None).predict(texts)
    assert np.abs(np.log(found) - np.log(plainly(folder, texts, case.task, normalization))).max() < 1e-4


def test_content_free_texts_say_what_names_alone_are_worth(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.zero_shot", gpt2, tmp_path)
    plain = case.fit(None)
    prior = np.asarray(plain.predict(CONTENT_FREE)).mean(0)
    odds = np.asarray(plain.predict(case.test)) / prior
    corrected = case_of("prompting.zero_shot", gpt2, tmp_path, scoring={"prior_correction": "content_free"})
    assert np.allclose(corrected.predict(None), odds / odds.sum(1, keepdims=True), atol=1e-6)
    assert np.abs(np.asarray(plain.predict(case.test)) - odds / odds.sum(1, keepdims=True)).max() > 1e-3


# Methods


@pytest.mark.parametrize(
    ("use", "more"),
    [("zero_shot", {"scoring": {"prior_correction": "content_free"}}), ("few_shot", {"num_examples": 2})],
)
def test_methods_keep_their_contract(use: str, more: dict[str, Any], gpt2: Path) -> None:
    options = {"model": str(gpt2), "context_length": 400, **more}
    assert [outcome for outcome in check_method(f"prompting.{use}", options) if not outcome.passed] == []


def test_unlabeled_texts_change_nothing(gpt2: Path, tmp_path: Path) -> None:
    for use in ("prompting.zero_shot", "prompting.few_shot"):
        case = case_of(use, gpt2, tmp_path)
        assert np.array_equal(case.predict(None), case.predict(case.unlabeled))


def test_metrics_say_what_was_done(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.zero_shot", gpt2, tmp_path, context_length=400)
    predictor = case.fit(None)
    assert "loading_seconds" in predictor.metrics
    predictor.predict([*case.test[:3], "xyz " * 250])
    assert predictor.metrics["share_cut"] == 0.25
    assert predictor.metrics["scoring_seconds"] > 0
    assert predictor.metrics["peak_memory_mb"] > 0
    assert predictor.metrics["share_scored_by_tree"] == 1
    assert "micro_batch_size" not in predictor.metrics


def test_metrics_say_that_a_model_takes_no_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("prompting.zero_shot", save_model("gpt2", tmp_path / "deaf", positions=512), tmp_path)
    monkeypatch.setattr(LanguageModel, "as_mask", lambda self, sees: torch.ones_like(sees))
    predictor = case.fit(None)
    predictor.predict(case.test[:3])
    assert predictor.metrics["share_scored_by_tree"] == 0


def test_memory_that_runs_out_changes_no_number(gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("prompting.zero_shot", save_model("gpt2", tmp_path / "own", positions=512), tmp_path)
    roomy = case.predict(None)
    usual = torch.Tensor.logsumexp

    def logsumexp(self: torch.Tensor, *arguments: Any) -> Any:
        if len(self) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return usual(self, *arguments)

    monkeypatch.setattr(torch.Tensor, "logsumexp", logsumexp)
    predictor = case.fit(None)
    assert np.allclose(predictor.predict(case.test), roomy, atol=1e-5)
    assert predictor.metrics["micro_batch_size"] == 4


def test_few_shot_shows_examples_of_every_class_in_an_order_drawn_by_the_seed(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.few_shot", gpt2, tmp_path)
    one, other = (choose_examples(case.train, case.task, None, seed) for seed in (1, 2))
    assert one == choose_examples(case.train, case.task, None, 1) != other
    assert sorted(one) == sorted(other)
    names = case.task.class_names
    assert len(one) == len(case.train.labels)
    assert [{name for _, name in one[start : start + 4]} for start in (0, 4, 8)] == [set(names)] * 3
    label_of = dict(zip(case.train.inputs, case.train.labels, strict=True))
    assert all(names[int(label_of[text])] == name for text, name in one)
    assert len(choose_examples(case.train, case.task, 2, 1)) == 8
    assert not np.allclose(case.predict(None), case.predict(None, seed=2))


def test_few_shot_shows_as_many_examples_as_fit_and_cuts_no_text_for_them() -> None:
    tokenizer = byte_level()
    task = task_of(WHO)
    train = Labeled(SENTENCES[::8], np.array([row // 8 for row in range(32)]))
    examples = choose_examples(train, task, None, 0)

    def make(some: Sequence[tuple[str, str]]) -> Prompts:
        return Prompts(tokenizer, task, 220, some)

    questions = Questions(make, examples)
    number = questions.num_examples
    assert 3 < number < 32
    longest = max(train.inputs, key=lambda text: len(tokenizer(text)["input_ids"]))
    assert not make(examples[:number]).prompts([longest])[0].is_cut
    with_more = Questions(lambda some: Prompts(tokenizer, task, 220, [*some, *examples[:1]] if some else []), examples)
    assert with_more.num_examples == number - 1
    texts = ["a", "law " * 40, *SENTENCES[:4], "law " * 250]
    seen = {
        row: (shown, prompt)
        for shown, _, rows, asked in questions.put(texts)
        for row, prompt in zip(rows.tolist(), asked, strict=True)
    }
    shown = [seen[row][0] for row in range(len(texts))]
    assert shown[0] == shown[2] == number
    assert 0 < shown[1] < number
    assert shown[-1] == 0
    for row, text in enumerate(texts):
        count, prompt = seen[row]
        assert prompt.is_cut == (row == 6)
        if row != 6:
            assert prompt.string == render_prompt(text, WHO, INSTRUCTION, examples[:count])
    assert make(examples[: shown[1] + 1]).prompts([texts[1]])[0].is_cut, "no more examples fit beside this one"


def test_few_shot_records_its_examples(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.few_shot", gpt2, tmp_path, num_examples=1)
    predictor = case.fit(None)
    predictor.predict([*case.test[:3], "xyz " * 250])
    assert predictor.metrics["num_examples"] == 4
    assert predictor.metrics["mean_examples"] == 3
    assert predictor.metrics["share_cut"] == 0.25


def test_models_that_fill_in_masks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="choose a causal language model"):
        case_of("prompting.zero_shot", save_model("bert", tmp_path / "bert"), tmp_path).fit(None)


def test_tokens_are_counted_as_prompts_have_them(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.zero_shot", gpt2, tmp_path)
    assert case.entry.count_tokens is not None
    counted = case.entry.count_tokens(["z" * 3000, "a"], options=case.options, folders=case.folders)
    assert list(counted.counts) == [1000, 1]
    assert counted.limit is None


def test_defaults_are_the_studys() -> None:
    """arXiv 2410.00179, section 9."""
    options = ZeroShot(model="x")
    assert (options.context_length, options.scoring.normalization, options.scoring.prior_correction) == (
        512,
        "mean",
        "none",
    )
    assert (options.scoring.precision, FewShot(model="x").num_examples) == ("fp32", None)


def test_the_small_spec_asks_the_built_in_model() -> None:
    spec = load_spec(ROOT / "specs" / "paper" / "zero_shot_small.yaml")
    assert {method.use for method in spec.methods} >= {"prompting.zero_shot", "prompting.few_shot"}
    assert {method.model for method in spec.methods} == {"builtin:gpt2-nano-512"}


def test_a_models_scores_leave_its_training_alone(gpt2: Path) -> None:
    """Its attention is switched for scoring, and back."""
    model = LanguageModel(gpt2, torch.device("cpu"))
    before = model.network.config._attn_implementation
    with model.usual_attention():
        assert model.network.config._attn_implementation != before
    assert model.network.config._attn_implementation == before
