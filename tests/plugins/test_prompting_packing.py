"""Packing of several prompts into one sequence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
import torch
from prompted import WHO, make_task
from small_models import SENTENCES, save_long_context_model

from peekbench_lm.language_model import LanguageModel
from peekbench_prompting.fit import make_encoder
from peekbench_prompting.options import Packed
from peekbench_prompting.training import pack

CPU = torch.device("cpu")
torch.set_num_threads(1)  # small models are slower with more threads


@pytest.fixture(scope="module", params=["gpt2", "mistral"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_long_context_model(request.param, tmp_path_factory.mktemp(request.param))


def pack_sentences(folder: Path, *tokens: str, **options: Any) -> tuple[LanguageModel, list[list[int]]]:
    """Pack 24 sentences with additional tokens; return the model and the sequences."""
    validated = Packed.model_validate({"model": str(folder), "context_length": 400, **options})
    model = LanguageModel(folder, CPU, "frozen")
    model.tokenizer.add_tokens(list(tokens))
    encoder = make_encoder(model, make_task(WHO, ""), validated)
    return model, pack(encoder, encoder.encode(SENTENCES[:24]), model, validated, seed=3)


def test_packed_sequences_contain_each_text_once_after_one_instruction(folder: Path) -> None:
    model, rows = pack_sentences(folder, sequence_length=400)
    decoded = [model.tokenizer.decode(row) for row in rows]
    for row, string in zip(rows, decoded, strict=True):
        assert len(row) <= 400
        assert string.count("Your task is to classify") == 1
        assert string.endswith("### Answer:")
        assert string.count("### Answer:\n\n### Text: ") == string.count("### Text: ") - 1 > 0
    assert all(sum(f"### Text: {text}\n ### Answer:" in string for string in decoded) == 1 for text in SENTENCES[:24])
    assert len(pack_sentences(folder, sequence_length=8192)[1][0]) <= 512, "limited by the model's context"


def test_a_sequence_has_at_most_the_given_number_of_texts(folder: Path) -> None:
    def count_texts(**options: Any) -> list[int]:
        model, rows = pack_sentences(folder, **options)
        return [model.tokenizer.decode(row).count("### Answer:") for row in rows]

    assert count_texts(texts_per_sequence=5)[:3] == [5, 5, 5]
    assert sum(count_texts(texts_per_sequence=100)) == 24
    assert max(count_texts(texts_per_sequence=20, sequence_length=400)) < 20, "the shorter limit applies"


def test_packing_keeps_a_token_that_spans_the_end_of_the_instruction(folder: Path) -> None:
    """Some tokenizers write the end of a sentence and the following empty line as one token."""
    model, rows = pack_sentences(folder, "a\n\n")  # the last class is an orchestra
    decoded = [model.tokenizer.decode(row) for row in rows]
    assert sum(string.count("### Answer:\n\n### Text:") for string in decoded) == 24 - len(rows)
    assert all(string.count("a\n\n### Text") == 1 for string in decoded)
