"""`peekbench new`: names, files, and what it refuses. tests/end_to_end/test_third_party.py installs what it writes."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from commands import run_command

from peekbench.errors import PeekbenchError
from peekbench_testing.new_plugin import NewPlugin, list_kinds, make_plugin, render_plugin, write_plugin

LONGEST = "a" + "bcdefghi_" * 4 + "xyz"


def test_command_writes_files_and_prints_what_to_do_next() -> None:
    done = run_command("new", "method", "my_lsa", "--folder", "own folder")
    assert done.returncode == 0, done.stderr
    assert "pip install --editable 'own folder'" in done.stdout
    assert "peekbench check my_lsa\n    peekbench run 'own folder/my_lsa.yaml'" in done.stdout
    project = tomllib.loads(Path("own folder/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["peekbench"] == {"my_lsa": "peekbench_my_lsa"}
    assert {str(path.relative_to("own folder")) for path in Path("own folder").rglob("*") if path.is_file()} == {
        ".github/workflows/checks.yml", ".gitignore", "README.md", "my_lsa.yaml", "pyproject.toml", "tox.ini",
        "src/peekbench_my_lsa/__init__.py", "src/peekbench_my_lsa/py.typed", "tests/test_contract.py",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "entry"), [("q", "q"), (LONGEST, LONGEST[::-1])])
@pytest.mark.parametrize("kind", list_kinds())
def test_files_are_valid_whatever_the_name(kind: str, name: str, entry: str, tmp_path: Path) -> None:
    plugin = make_plugin(kind, name if name == entry else f"{name}.{entry}")
    write_plugin(plugin, tmp_path)
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert yaml.safe_load((tmp_path / ".github/workflows/checks.yml").read_text())["jobs"]
    code = (tmp_path / "src" / plugin.package / "__init__.py").read_text()
    assert f'name="{entry}"' in code
    use = name if name == entry else f"{name}.{entry}"
    assert use in (tmp_path / f"{name}.yaml").read_text().split("seed: 1")[1], "the spec uses the plugin"
    assert kind == "renderer" or f'"{use}"' in (tmp_path / "tests" / "test_contract.py").read_text()
    ruff = shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run([ruff, *command, "--no-cache", tmp_path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    plugin = NewPlugin("source", "sizes")
    (tmp_path / "LICENSE").write_text("mine")
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(PeekbenchError, match=r"already contains README.md, .* choose another folder with --folder"):
        write_plugin(plugin, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"LICENSE", "README.md"}
    assert (tmp_path / "README.md").read_text() == "mine"
    (tmp_path / "README.md").unlink()
    assert len(write_plugin(plugin, tmp_path)) == len(render_plugin(plugin))
    assert (tmp_path / "LICENSE").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MyMethod", "use up to 40 lowercase letters"),
        ("null", "such as 'null'"),
        ("../lsa", "use up to 40 lowercase letters"),
        ("classic", "is installed; choose another name, for example 'my_classic'"),
        ("stats", "is installed"),
    ],
)
def test_wrong_names_are_errors(name: str, message: str) -> None:
    with pytest.raises(PeekbenchError) as caught:
        make_plugin("method", name)
    assert message in str(caught.value)
