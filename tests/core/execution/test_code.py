"""The files whose code results depend on, for all ways to install a plugin."""

from __future__ import annotations

import hashlib
import json
import site
import sys
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from peekbench.errors import PluginError
from peekbench.execution.code import code_hashes, describe_code_change
from peekbench.plugins import registry

METHOD = """
import json, plug_helper, plug_package
from functools import partial
from peekbench import MethodEntry, hookimpl
from peekbench.plugins import Reference

@hookimpl
def peekbench_methods():
    return [
        MethodEntry(name="m", method="plug_reference:fit", pin=partial(Reference("plug_space.pins.pin:pin"), 1),
                    packages=("plug_outside", "plug_open"), summary=""),
        MethodEntry(name="lacking", method=print, packages=("plug_missing",), summary=""),
    ]
"""
LIBRARY = f"plug_package/inner/fast{EXTENSION_SUFFIXES[-1]}"
OWN = {
    "plug_method.py": METHOD,
    "plug_helper.py": "def fit():\n    from plug_space import no_such_name, shared\n    import no_such_module",
    "plug_reference.py": "def load():\n    from importlib import import_module\n    import_module('plug_dynamic')",
    "plug_dynamic.py": "from plug_space.pins import *",
    "plug_package/__init__.py": "",
    "plug_package/inner/deep.py": "from ...  import nothing  # beyond the top",
    LIBRARY: "no Python",
    "plug_space/shared.py": "from .beside import x",
    "plug_space/beside.py": "wrong syntax,",
    "plug_space/pins/__init__.py": "",
    "plug_space/pins/pin.py": "",
}
OUTSIDE = {"plug_outside/__init__.py": "import numpy", "plug_open/inner/__init__.py": "", "plug_open/a.py": ""}
UNUSED = {
    "plug_unused.py": "",
    "plug_space/unused.py": "",
    "tests/test_method.py": "",
    "docs/conf.py": "",
    "plug_package/data.json": "",
    "plug_package/.#deep.py": "",
    "plug_package/old-copy.py": "",
    "plug_package/__pycache__/deep.cpython-311.pyc": "",
}
# What setuptools writes, with fewer lines.
FINDER = """
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
MAPPING: dict[str, str] = {mapping}

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in MAPPING:
            return None
        spec = PathFinder.find_spec(name, [str(Path(MAPPING[name]).parent)])
        if spec.loader is None or not spec.has_location:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [MAPPING[name], "placeholder"]
        return spec

sys.meta_path.insert(0, Finder)
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def place_regular(site_packages: Path, _: Path) -> tuple[Path, list[str]]:
    return site_packages, [*OWN, "plug_package/__pycache__/deep.cpython-311.pyc", "../../bin/plug"]


def place_path_file(site_packages: Path, project: Path) -> tuple[Path, list[str]]:
    write(site_packages, {"_plug.pth": f"# comment\nimport sys\n{project}\n"})
    return project, ["_plug.pth"]


def place_src_layout(site_packages: Path, project: Path) -> tuple[Path, list[str]]:
    return place_path_file(site_packages, project / "src")


def place_finder(site_packages: Path, project: Path) -> tuple[Path, list[str]]:
    mapping = {name: str(project / name) for name in sorted({file.split("/")[0].partition(".")[0] for file in OWN})}
    finder = "__editable___plug_1_0_finder"
    write(site_packages, {f"{finder}.py": FINDER.replace("{mapping}", repr(mapping)), "_plug.pth": f"import {finder}"})
    return project, ["_plug.pth", f"{finder}.py"]


def place_unlisted(_: Path, project: Path) -> tuple[Path, list[str]]:
    sys.path.append(str(project))
    return project, []


Place = Callable[[Path, Path], tuple[Path, list[str]]]


@pytest.fixture(params=[place_regular, place_path_file, place_src_layout, place_finder, place_unlisted])
def installed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of the modules of a distribution, with others beside them, that is installed in one of several ways."""
    modules = set(sys.modules)
    for name in ("path", "meta_path"):
        monkeypatch.setattr(sys, name, [*getattr(sys, name)])
    site_packages = tmp_path / "site-packages"
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(site_packages)])
    place: Place = request.param
    folder, recorded = place(site_packages, tmp_path / "project")
    write(folder, {**OWN, **UNUSED})
    write(site_packages, {**OUTSIDE, "plug_space/foreign.py": ""})
    metadata = {
        "METADATA": "Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n",
        "entry_points.txt": "[peekbench]\nplug = plug_method\n",
        **({"RECORD": "".join(f"{name},,\n" for name in recorded)} if recorded else {}),
    }
    write(site_packages / "plug-1.0.dist-info", metadata)
    site.addsitedir(str(site_packages))
    invalidate_caches()
    registry.installed.cache_clear()
    yield folder
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    monkeypatch.undo()
    registry.installed.cache_clear()
    registry.load.cache_clear()


def test_code_of_a_plugin_is_the_same_for_all_kinds_of_installations(installed: Path, tmp_path: Path) -> None:
    code = code_hashes(["plug.m"])["plug"]
    assert sorted(code["files"]) == sorted({**OWN, **OUTSIDE})
    assert code["files"]["plug_helper.py"] == hashlib.sha256(OWN["plug_helper.py"].encode()).hexdigest()[:12]
    assert json.loads(json.dumps(code)) == code
    assert "plug_helper" in sys.modules
    assert "plug_reference" not in sys.modules, "nothing is imported"
    for name in [*OWN, *UNUSED]:
        path = installed / name
        path.write_text(path.read_text() + "# changed")
        change = describe_code_change(code, changed := code_hashes(["plug.m"])["plug"])
        assert change == ("" if name in UNUSED else f"{name} changed")
        code = changed
    (tmp_path / "site-packages" / "plug_open" / "inner" / "new.py").write_text("")
    (installed / "plug_package" / "inner" / "deep.py").unlink()
    change = describe_code_change(code, code_hashes(["plug.m"])["plug"])
    assert change == "plug_open/inner/new.py added, plug_package/inner/deep.py removed"


@pytest.mark.parametrize("installed", [place_regular], indirect=True)
def test_declared_packages_must_be_installed(installed: Path) -> None:
    with pytest.raises(PluginError, match="plug.lacking declares the package 'plug_missing', which is not installed"):
        code_hashes(["plug.lacking"])


def test_code_of_a_first_party_plugin_includes_shared_libraries_but_not_the_core() -> None:
    code = code_hashes(["finetune.tapt", "controls.null"])
    packages = {plugin: {name.split("/")[0] for name in code[plugin]["files"]} for plugin in code}
    assert packages == {
        "finetune": {"peekbench_finetune", "peekbench_lm", "peekbench_hub"},
        "controls": {"peekbench_controls"},
    }


def test_messages_on_changed_code_list_a_few_files() -> None:
    before = {f"{number}.py": "a" for number in range(8)}
    after = {"sha256": "b", "files": dict.fromkeys(before, "b")}
    change = describe_code_change({"sha256": "a", "files": before}, after)  # type: ignore[arg-type]
    assert change == "0.py changed, 1.py changed, 2.py changed, 3.py changed, 4.py changed, and 3 other files"
