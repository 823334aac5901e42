"""Fixtures of plugin tests; those for language models only if torch is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from unittest import mock

import pytest
from forks import run_check

from peekbench_testing import fresh_process

if importlib.util.find_spec("torch") is not None:
    from model_fixtures import any_model, encoder, folder, make_embedder, model

    __all__ = ["any_model", "encoder", "folder", "make_embedder", "model"]


@pytest.fixture(scope="module", autouse=True)
def _copied_processes() -> Iterator[None]:
    """Contract checks copy a process; tests of `peekbench_testing` and of its templates start new ones."""
    with mock.patch.object(fresh_process, "run_code", run_check):
        yield
