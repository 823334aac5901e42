"""Plugins that a test installs for itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from installed_plugins import Install

from peekbench.plugins import registry


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a plugin."""

    def forget() -> None:
        registry.installed.cache_clear()
        registry.load_installed.cache_clear()

    def make(name: str, code: str, *, distribution: str = "", module: str = "") -> None:
        distribution, module = distribution or name, module or f"plugin_{name}"
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[peekbench]\n{name} = {module}\n")
        forget()

    monkeypatch.syspath_prepend(str(tmp_path))
    yield make
    forget()
