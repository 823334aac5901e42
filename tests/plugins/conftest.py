"""What tests of language models have in common: random ones of a few thousand weights, written into folders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_models import KINDS, save_model

from peekbench_lm.model import LanguageModel


@pytest.fixture(scope="module", params=sorted(KINDS))
def any_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return _load(_save(request, tmp_path_factory))


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _save(request, tmp_path_factory)


@pytest.fixture
def model(folder: Path) -> LanguageModel:
    return _load(folder)


def _save(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(request.param, tmp_path_factory.mktemp(request.param))


def _load(folder: Path) -> LanguageModel:
    return LanguageModel(folder, torch.device("cpu"))
