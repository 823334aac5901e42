"""Prompting methods with training: arms, training data, options and runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import SENTENCES, save_long_context_model, save_model
from transformers import AutoTokenizer

from peekbench import Dataset, Folders
from peekbench.errors import SpecError
from peekbench.spec.components import MethodSpec, make_component
from peekbench_lm import completions
from peekbench_lm.completions import Completion
from peekbench_lm.fit import language_models
from peekbench_lm.language_model import LanguageModel
from peekbench_prompting import training
from peekbench_prompting.options import Prompting
from peekbench_prompting.provision import prefetch
from peekbench_testing import check_entry, make_case
from peekbench_testing.case import Case

CPU = torch.device("cpu")
torch.set_num_threads(1)  # small models are slower with more threads
USES = ("prompting.pretrain", "prompting.packed", "prompting.supervised")
STAGE = {"epochs": 3, "batch_size": 8, "learning_rate": 2e-2}
ONE_EPOCH = {"epochs": 1, "batch_size": 32, "learning_rate": 2e-2}
QUICK: dict[str, Any] = {"weights": "fp32", "precision": "fp32", "pretraining": STAGE, "lora": {"rank": 4}}
needs_bitsandbytes = pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"
)

# The class is the subject of the sentence.
DATASET = Dataset(
    inputs=SENTENCES * 2,
    labels=np.array([row // 64 for row in range(256)] * 2),
    class_names=("engine", "rabbit", "minister", "orchestra"),
)


@pytest.fixture(scope="module")
def mistral(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_long_context_model("mistral", tmp_path_factory.mktemp("one_mistral"))


@pytest.fixture(scope="module", params=["gpt2", "mistral"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_long_context_model(request.param, tmp_path_factory.mktemp(request.param))


def make_method_case(use: str, model: Path | str, tmp_path: Path, **options: Any) -> Case:
    spec = make_component(MethodSpec, use, {"model": str(model), **QUICK, **options})
    return make_case(use, spec.entry, spec.options, tmp_path, DATASET)


@pytest.mark.slow
def test_a_method_passes_all_contract_checks(mistral: Path) -> None:
    """Short texts suffice: those of `finetune` check the same engine on long texts and more classes."""
    options = {"model": str(mistral), **QUICK, "pretraining": ONE_EPOCH, "pretrain": False, "finetuning": ONE_EPOCH}
    outcomes = check_entry("prompting.supervised", options, data=DATASET)
    assert [outcome for outcome in outcomes if not outcome.passed] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "gpt_neox"])
def test_every_supported_architecture_is_trained_on_prompts(name: str, tmp_path: Path) -> None:
    case = make_method_case("prompting.pretrain", save_long_context_model(name, tmp_path / name), tmp_path)
    base, extra = case.fit(None), case.fit(case.unlabeled)
    assert not any(metric.startswith("pretraining") for metric in base.metrics)
    metrics = extra.metrics
    assert metrics["pretraining_loss_3"] < metrics["pretraining_loss_1"] - 0.02
    assert metrics["pretraining_tokens_per_second"] == metrics["pretraining_tokens"] / metrics["pretraining_seconds"]
    assert not np.allclose(base.predict(case.test), extra.predict(case.test))
    assert {"loading_seconds", "peak_memory_mb", "scoring_seconds"} <= extra.metrics.keys()


@pytest.mark.slow
def test_the_base_arm_is_zero_shot_and_shared(mistral: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    untrained = make_component(MethodSpec, "prompting.zero_shot", {"model": str(mistral)})
    expected = make_case(untrained.use, untrained.entry, untrained.options, tmp_path, DATASET).predict(None)
    uses: list[tuple[str, dict[str, Any]]] = [
        ("prompting.pretrain", {}),
        ("prompting.packed", {"texts_per_sequence": 8}),  # packing concerns the unlabeled texts alone
        ("prompting.pretrain", {"lora": None}),  # trainable weights change the rounding of torch's products
    ]
    for use, options in uses:
        method = make_component(MethodSpec, use, {"model": str(mistral), **QUICK, **options})
        assert method.base_key() == untrained.base_key()
        case = make_case(use, method.entry, method.options, tmp_path, DATASET)
        monkeypatch.setattr(language_models, "_idle", {})  # as in a new process
        trained = case.predict(case.unlabeled[:16])
        assert not np.allclose(trained, expected)
        assert np.array_equal(case.predict(None), expected), "not the scores of the trained model"
        assert np.array_equal(case.predict(case.unlabeled[:16]), trained), "not those of the untrained model"
    supervised = make_component(MethodSpec, "prompting.supervised", {"model": str(mistral), **QUICK})
    assert supervised.base_key() != untrained.base_key()


def record_training_data(case: Case, monkeypatch: pytest.MonkeyPatch, unlabeled: Any) -> list[list[Completion]]:
    """Fit, and return the training data of each stage."""
    stages: list[list[Completion]] = []
    original = completions.train_completions

    def train_completions(model: Any, rows: Any, *arguments: Any) -> Any:
        stages.append(rows)
        return original(model, rows, *arguments)

    monkeypatch.setattr(training, "train_completions", train_completions)
    case.fit(unlabeled)
    return stages


def test_pretraining_uses_all_tokens_of_prompts_without_answers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_method_case("prompting.pretrain", folder, tmp_path)
    (rows,) = record_training_data(case, monkeypatch, case.unlabeled)
    tokenizer = LanguageModel(folder, CPU, "frozen").tokenizer
    prompts = [tokenizer.decode(row.ids) for row in rows]
    assert all(row.start == 1 for row in rows)
    for text, prompt in zip(case.unlabeled, prompts, strict=True):
        assert prompt.startswith("Your task is to classify a given text as one of these categories:\nengine\nrabbit")
        assert prompt.endswith(f"\n\n### Text: {text}\n ### Answer:")


@pytest.mark.slow
def test_finetuning_uses_only_the_answers_of_the_train_set(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_method_case(
        "prompting.supervised", folder, tmp_path, lora=None, finetuning={**STAGE, "epochs": 5}, pretraining={}
    )
    pretraining, answers = record_training_data(case, monkeypatch, case.unlabeled)
    assert len(pretraining) == len(case.unlabeled)
    tokenizer = LanguageModel(folder, CPU, "frozen").tokenizer
    for row, text, label in zip(answers, case.train.inputs, case.train.labels, strict=True):
        assert tokenizer.decode(row.ids[row.start :]) == f" {case.task.class_names[int(label)]}"
        assert tokenizer.decode(row.ids[: row.start]).endswith(f"### Text: {text}\n ### Answer:")
    metrics = case.fit(None).metrics
    assert metrics["finetuning_loss_5"] < 0.7 * metrics["finetuning_loss_1"]
    assert not any(metric.startswith("pretraining") for metric in metrics)
    without = make_method_case("prompting.supervised", folder, tmp_path, pretrain=False)
    assert np.array_equal(without.predict(without.unlabeled), without.predict(None))


@needs_bitsandbytes
@pytest.mark.parametrize("use", USES)
def test_four_bit_weights_are_trained_with_default_options(use: str, folder: Path, tmp_path: Path) -> None:
    spec = make_component(MethodSpec, use, {"model": str(folder)})
    assert spec.raw_options()["weights"] == "nf4"
    case = make_case(use, spec.entry, spec.options, tmp_path, DATASET)
    first, second = (case.predict(case.unlabeled) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, case.predict(None))


def prefetch_method(use: str, model: Path, options: dict[str, Any], tmp_path: Path) -> Mapping[str, Any]:
    method = make_component(MethodSpec, use, {"model": str(model), **options})
    assert isinstance(method.options, Prompting)
    return prefetch(options=method.options, folders=Folders(tmp_path, tmp_path))


def test_a_masked_language_model_is_refused_before_the_run_and_in_a_fit(tmp_path: Path) -> None:
    model = save_model("bert", tmp_path / "bert")
    with pytest.raises(SpecError, match="needs a causal one"):
        prefetch_method("prompting.zero_shot", model, {}, tmp_path)
    with pytest.raises(SpecError, match="needs a causal one"):
        make_method_case("prompting.pretrain", model, tmp_path).fit(None)


def test_packed_texts_that_attend_to_each_other_are_refused_in_chats(tmp_path: Path) -> None:
    folder = save_model("llama", tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
    tokenizer.save_pretrained(folder)
    with pytest.raises(SpecError, match="chat.*`chat_template: never`"):
        prefetch_method("prompting.packed", folder, {"weights": "fp32"}, tmp_path)
    options = {"weights": "fp32", "chat_template": "never"}
    assert prefetch_method("prompting.packed", folder, options, tmp_path)["sha256"]


def test_four_bit_weights_without_adapters_are_refused() -> None:
    with pytest.raises(SpecError, match="`lora`.*`weights: fp32`"):
        make_component(MethodSpec, "prompting.pretrain", {"model": "x", "lora": None})
