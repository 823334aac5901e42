"""The limits and generators of a process that several threads share."""

from __future__ import annotations

import os

import pytest

from peekbench.execution.determinism import POOL_VARIABLES, one_thread_pools


def test_limits_last_until_the_last_user_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in POOL_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    first, second = one_thread_pools(), one_thread_pools()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert {os.environ[name] for name in POOL_VARIABLES} == {"1"}
    second.__exit__(None, None, None)
    assert not os.environ.keys() & set(POOL_VARIABLES)
