"""Fixtures of language-model tests: small random models in folders and in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_models import KINDS, save_model

from peekbench_lm.models.language_model import LanguageModel


@pytest.fixture(scope="module", params=sorted(KINDS))
def any_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """Return a model of each architecture."""
    return _load(_save(request, tmp_path_factory))


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a masked and of a causal model."""
    return _save(request, tmp_path_factory)


@pytest.fixture
def model(folder: Path) -> LanguageModel:
    """Return a masked and a causal model."""
    return _load(folder)


def _save(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(request.param, tmp_path_factory.mktemp(request.param))


def _load(folder: Path) -> LanguageModel:
    return LanguageModel(folder, torch.device("cpu"))
