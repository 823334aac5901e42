"""Packing of several prompts into one sequence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import SENTENCES, save_long_context_model

from peekbench import Dataset
from peekbench.spec.components import MethodSpec, make_component
from peekbench_lm.language_model import LanguageModel
from peekbench_prompting.fit import make_encoder
from peekbench_prompting.options import Packed
from peekbench_prompting.training import pack
from peekbench_testing import make_case
from peekbench_testing.case import Case

CPU = torch.device("cpu")
torch.set_num_threads(1)  # small models are slower with more threads
DATASET = Dataset(
    inputs=SENTENCES * 2,
    labels=np.array([row // 64 for row in range(256)] * 2),
    class_names=("engine", "rabbit", "minister", "orchestra"),
)
STAGE = {"epochs": 3, "batch_size": 8, "learning_rate": 2e-2}


@pytest.fixture(scope="module", params=["gpt2", "mistral"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_long_context_model(request.param, tmp_path_factory.mktemp(request.param))


def make_method_case(use: str, model: Path, tmp_path: Path, **options: Any) -> Case:
    quick = {"weights": "fp32", "precision": "fp32", "lora": {"rank": 4}}
    spec = make_component(MethodSpec, use, {"model": str(model), **quick, **options})
    return make_case(use, spec.entry, spec.options, tmp_path, DATASET)


def pack_sentences(folder: Path, **options: Any) -> tuple[LanguageModel, list[Any], list[list[int]]]:
    """Pack 24 sentences; return the model, the prompts and the sequences."""
    case = make_method_case("prompting.packed", folder, folder, **{"context_length": 400, **options})
    assert isinstance(case.options, Packed)
    model = LanguageModel(folder, CPU, "frozen")
    encoder = make_encoder(model, case.task, case.options)
    prompts = encoder.encode(SENTENCES[:24])
    return model, prompts, pack(encoder, prompts, model, case.options, seed=3)


def test_packed_sequences_contain_each_text_once_after_one_instruction(folder: Path) -> None:
    model, _, rows = pack_sentences(folder, sequence_length=400)
    assert len(rows) > 1
    decoded = [model.tokenizer.decode(row) for row in rows]
    for row, string in zip(rows, decoded, strict=True):
        assert len(row) <= 400
        assert string.count("Your task is to classify") == 1
        assert string.endswith("### Answer:")
        assert string.count("### Answer:\n\n### Text: ") == string.count("### Text: ") - 1 > 0
    assert all(sum(f"### Text: {text}\n### Answer:" in string for string in decoded) == 1 for text in SENTENCES[:24])
    assert len(pack_sentences(folder, sequence_length=8192)[2][0]) <= 512, "limited by the model's context"


def test_a_sequence_has_at_most_the_given_number_of_texts(folder: Path) -> None:
    def count_texts(**options: Any) -> list[int]:
        model, _, rows = pack_sentences(folder, **options)
        return [model.tokenizer.decode(row).count("### Answer:") for row in rows]

    assert count_texts(texts_per_sequence=5)[:3] == [5, 5, 5]
    assert count_texts(texts_per_sequence=1) == [1] * 24
    assert sum(count_texts(texts_per_sequence=100)) == 24
    assert max(count_texts(texts_per_sequence=20, sequence_length=400)) < 20, "the shorter limit applies"


def test_packing_keeps_a_token_that_spans_the_end_of_the_instruction(folder: Path) -> None:
    """Some tokenizers write the end of a sentence and the following empty line as one token."""
    case = make_method_case("prompting.packed", folder, folder)
    assert isinstance(case.options, Packed)
    model = LanguageModel(folder, CPU, "frozen")
    model.tokenizer.add_tokens(["a\n\n"])  # the last class is an orchestra
    encoder = make_encoder(model, case.task, case.options)
    rows = pack(encoder, encoder.encode(SENTENCES[:24]), model, case.options, seed=3)
    decoded = [model.tokenizer.decode(row) for row in rows]
    assert sum(string.count("### Answer:\n\n### Text:") for string in decoded) == 24 - len(rows)
    assert all(string.count("a\n\n### Text") == 1 for string in decoded)
