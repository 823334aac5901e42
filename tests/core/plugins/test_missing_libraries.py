"""Libraries that a method needs and that are not installed are found before a run, without an import of the method."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peekbench.errors import PluginError, SpecError
from peekbench.execution.preparation import check_files
from peekbench.execution.runner import run
from peekbench.plugins import MethodEntry
from peekbench.plugins.references import describe_missing
from peekbench.spec.experiment import ExperimentSpec

INDIRECT = """
import sys
from . import deep
raise SystemExit("this module must not be imported")
"""
OPTIONAL = """
from typing import TYPE_CHECKING
import json, numpy.linalg
if TYPE_CHECKING:
    import absent_library
try:
    import absent_library
except ImportError:
    pass
def fit(unlabeled, train, task, *, options, context):
    import absent_library
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an importable package."""
    folder = tmp_path / "modules" / "package_with_gaps"
    folder.mkdir(parents=True)
    for name, text in (
        ("__init__", ""),
        ("direct", "import absent_library.part\n"),
        ("indirect", INDIRECT),
        ("deep", "from package_with_gaps import direct\n"),
        ("optional", OPTIONAL),
        ("broken", "import absent_library\n]"),
    ):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def entry(module: str) -> MethodEntry:
    return MethodEntry(name="gap", method=f"package_with_gaps.{module}:fit", summary="a method")


@pytest.mark.parametrize("module", ["direct", "indirect"])
def test_a_missing_library_is_named_with_its_remedy(package: Path, module: str) -> None:
    expected = "it needs absent_library, which is not installed; install the missing package"
    assert describe_missing(entry(module)) == expected
    assert not any(name.startswith("package_with_gaps") for name in sys.modules)
    (package.parent / "absent_library.py").write_text("")
    assert describe_missing(entry(module)) == ""


@pytest.mark.parametrize("module", ["optional", "broken", "absent"])
def test_a_module_that_may_work_is_not_refused(package: Path, module: str) -> None:
    assert describe_missing(entry(module)) == ""


def test_a_spec_without_a_library_is_refused_before_the_store_is_made(
    make_spec: Callable[..., ExperimentSpec], package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec: Any = make_spec(methods=["toy.vote"])
    monkeypatch.setattr(type(spec.methods[0]), "entry", entry("direct"))
    for action, error in ((check_files, SpecError), (run, PluginError)):
        with pytest.raises(error, match=r"method toy.vote: it needs absent_library, which is not installed"):
            action(spec)
    assert not Path("runs").exists()
