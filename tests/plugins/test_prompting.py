"""Prompting methods without training: class scores, examples, metrics and contracts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from process_checks import check_in_this_process
from prompted import INSTRUCTION, WHO, byte_level, make_task, reference_probabilities
from small_models import SENTENCES, save_model
from torch.nn.modules.module import register_module_forward_pre_hook

from peekbench import Dataset, Labeled
from peekbench.spec.components import MethodSpec, make_component
from peekbench_lm.fit import language_models
from peekbench_prompting.fit import CONTENT_FREE
from peekbench_prompting.frame import frame_prompt
from peekbench_prompting.prompts import ExamplePrompts, PromptEncoder, choose_examples
from peekbench_testing import check_entry, make_case
from peekbench_testing.case import Case

torch.set_num_threads(1)  # small models are slower with more threads


# Scores


@pytest.fixture(scope="module", params=["gpt2", "llama", "mistral", "gpt_neox"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(request.param, tmp_path_factory.mktemp(request.param), positions=512)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("gpt2", tmp_path_factory.mktemp("gpt2"), positions=512)


DATASET = Dataset(
    inputs=SENTENCES * 2,
    labels=np.array([row // 64 for row in range(256)] * 2),
    class_names=("an engine", "an engine that plays", "a rabbit", "the minister"),
    instruction=INSTRUCTION,
)


def make_method_case(use: str, folder: Path, tmp_path: Path, **options: Any) -> Case:
    spec = make_component(MethodSpec, use, {"model": str(folder), **options})
    return make_case(use, spec.entry, spec.options, tmp_path, DATASET)


@pytest.mark.parametrize("normalization", ["mean", "sum"])
def test_scores_match_the_reference_implementation(normalization: str, folder: Path, tmp_path: Path) -> None:
    case = make_method_case(
        "prompting.zero_shot", folder, tmp_path, scoring={"normalization": normalization, "batch_size": 4}
    )
    texts = [*case.test[:7], case.test[0] * 3]
    expected = reference_probabilities(folder, texts, case.task, normalization)
    assert np.abs(np.log(case.fit(None).predict(texts)) - np.log(expected)).max() < 1e-4
    assert np.ptp(expected, axis=1).min() > 1e-3, "the classes differ"


def test_prior_correction_divides_by_the_scores_of_content_free_texts(gpt2: Path, tmp_path: Path) -> None:
    case = make_method_case("prompting.zero_shot", gpt2, tmp_path)
    plain = case.fit(None)
    prior = np.asarray(plain.predict(CONTENT_FREE)).mean(0)
    odds = np.asarray(plain.predict(case.test)) / prior
    corrected = make_method_case("prompting.zero_shot", gpt2, tmp_path, scoring={"prior_correction": "content_free"})
    assert np.allclose(corrected.predict(None), odds / odds.sum(1, keepdims=True), atol=1e-6)
    assert np.abs(np.asarray(plain.predict(case.test)) - odds / odds.sum(1, keepdims=True)).max() > 1e-3


# Methods


@pytest.mark.slow
def test_methods_pass_the_contract_checks(gpt2: Path, tmp_path: Path) -> None:
    scoring = {"prior_correction": "content_free"}
    check_in_this_process(
        make_method_case("prompting.batch_calibration", gpt2, tmp_path, context_length=400, scoring=scoring)
    )
    options = {"model": str(gpt2), "context_length": 400, "num_examples": 2}
    outcomes = check_entry("prompting.few_shot", options, data=DATASET)
    assert [outcome for outcome in outcomes if not outcome.passed] == []


@pytest.mark.parametrize("method", ["batch_calibration", "neighbor_voting"])
def test_a_process_computes_each_prompt_alone_and_once(
    method: str, gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results are equal to the last digit, whatever was computed before: an interrupted run continues in a new one."""
    case = make_method_case(f"prompting.{method}", gpt2, tmp_path)
    texts = [*SENTENCES[60:65], "", SENTENCES[3] * 3, "(a rabbit)"]
    predictions = []
    for earlier in (SENTENCES[:0], SENTENCES[40:62]):
        monkeypatch.setattr(language_models, "_idle", {})  # as in a new process
        case.fit(earlier or None).predict([*earlier, *texts[::-2]])
        predictions.append(case.fit(SENTENCES[:9]).predict(texts))
    assert np.array_equal(*predictions)
    calls: list[torch.nn.Module] = []
    with register_module_forward_pre_hook(lambda module, _: calls.append(module)):
        again = case.fit(SENTENCES[:9]).predict(texts[::-1])
    assert np.array_equal(again[::-1], predictions[0])
    assert not calls


@pytest.mark.parametrize("strength", [1.0, 0.5])
def test_batch_calibration_divides_by_the_mean_probabilities_of_the_unlabeled_texts(
    strength: float, gpt2: Path, tmp_path: Path
) -> None:
    """The reference is the formula of arXiv 2309.17249, section 3, with the probabilities of transformers."""
    case = make_method_case("prompting.batch_calibration", gpt2, tmp_path, strength=strength)
    unlabeled, texts = SENTENCES[:9], SENTENCES[60:65]
    predictor = case.fit(unlabeled)
    prior = reference_probabilities(gpt2, unlabeled, case.task).mean(0)
    odds = reference_probabilities(gpt2, texts, case.task) / prior**strength
    assert np.allclose(predictor.predict(texts), odds / odds.sum(1, keepdims=True), atol=1e-5)
    assert predictor.metrics["smallest_prior"] == pytest.approx(prior.min(), rel=1e-4)
    assert predictor.metrics["largest_prior"] == pytest.approx(prior.max(), rel=1e-4) != prior.min()


def test_few_shot_examples_cover_all_classes_in_random_order(gpt2: Path, tmp_path: Path) -> None:
    case = make_method_case("prompting.few_shot", gpt2, tmp_path)
    first, second = (choose_examples(case.train, case.task, None, seed) for seed in (1, 2))
    assert first == choose_examples(case.train, case.task, None, 1) != second
    names = case.task.class_names
    assert len(first) == len(case.train.labels)
    assert [{name for _, name in first[start : start + 4]} for start in (0, 4, 8)] == [set(names)] * 3
    label_of = dict(zip(case.train.inputs, case.train.labels, strict=True))
    assert all(names[int(label_of[text])] == name for text, name in first)
    assert len(choose_examples(case.train, case.task, 2, 1)) == 8
    assert not np.allclose(case.predict(None), case.predict(None, seed=2))


def test_few_shot_uses_as_many_examples_as_fit_without_cutting_texts() -> None:
    tokenizer = byte_level()
    task = make_task(WHO)
    train = Labeled(SENTENCES[::8], np.array([row // 8 for row in range(32)]))
    examples = choose_examples(train, task, None, 0)

    def make_encoder(chosen: Sequence[tuple[str, str]]) -> PromptEncoder:
        return PromptEncoder(tokenizer, task, 220, frame_prompt(WHO, INSTRUCTION, chosen))

    prompts = ExamplePrompts(make_encoder, examples)
    number = prompts.num_examples
    assert 3 < number < 32
    longest = max(train.inputs, key=lambda text: len(tokenizer(text)["input_ids"]))
    assert not make_encoder(examples[:number]).encode([longest])[0].is_cut
    with_more = ExamplePrompts(lambda chosen: make_encoder([*chosen, *examples[:1]] if chosen else []), examples)
    assert with_more.num_examples == number - 1
    texts = ["a", "law " * 40, *SENTENCES[:4], "law " * 250]
    built = {
        row: (batch.num_examples, prompt)
        for batch in prompts.build(texts)
        for row, prompt in zip(batch.rows.tolist(), batch.prompts, strict=True)
    }
    counts = [built[row][0] for row in range(len(texts))]
    assert counts[0] == counts[2] == number
    assert 0 < counts[1] < number
    assert counts[-1] == 0
    for row, text in enumerate(texts):
        count, prompt = built[row]
        assert prompt.is_cut == (row == 6)
        if row != 6:
            assert prompt.string == frame_prompt(WHO, INSTRUCTION, examples[:count]).around(text)
    assert make_encoder(examples[: counts[1] + 1]).encode([texts[1]])[0].is_cut, "no more examples fit"
