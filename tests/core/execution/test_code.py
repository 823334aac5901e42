"""The files whose code results depend on, for all ways to install a plugin."""

from __future__ import annotations

import hashlib
import json
import site
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import invalidate_caches
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from zipfile import ZipFile

import pytest

from peekbench.errors import PluginError
from peekbench.execution.code import code_hashes, describe_code_change
from peekbench.execution.module_files import find_unit
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
    "plug_helper.py": """
def fit():
    import plug_space
    import no_such_module
    from plug_space import foreign, no_such_name, shared
""",
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


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@dataclass
class Layout:
    """Where the files of a distribution are, and which files its installer records."""

    folder: Path
    helpers: Path
    """Folder of `plug_helper.py`, which an editable installation can have elsewhere."""
    recorded: list[str]

    def path(self, name: str) -> Path:
        return (self.helpers if name == "plug_helper.py" else self.folder) / name


def place_regular(site_packages: Path, _: Path) -> Layout:
    recorded = [*OWN, "plug_package/__pycache__/deep.cpython-311.pyc", "../../bin/plug"]
    return Layout(site_packages, site_packages, recorded)


def place_path_file(site_packages: Path, project: Path) -> Layout:
    write(site_packages / "_plug.pth", f"# comment\nimport sys\n{project}\n{project / 'lib'}")
    return Layout(project, project / "lib", ["_plug.pth"])


def place_src_layout(site_packages: Path, project: Path) -> Layout:
    return place_path_file(site_packages, project / "src")


def place_finder(site_packages: Path, project: Path) -> Layout:
    name = "__editable___plug_1_0_finder"
    layout = Layout(project, project / "lib", ["_plug.pth", f"{name}.py"])
    modules = sorted({file.split("/")[0] for file in OWN})
    mapping = {module.removesuffix(".py"): str(layout.path(module).with_suffix("")) for module in modules}
    write(site_packages / f"{name}.py", FINDER.replace("{mapping}", repr(mapping)))
    write(site_packages / "_plug.pth", f"import {name}")
    return layout


def place_unlisted_site_packages(site_packages: Path, _: Path) -> Layout:
    return Layout(site_packages, site_packages, [])


def place_unlisted(_: Path, project: Path) -> Layout:
    sys.path.append(str(project))
    return Layout(project, project, [])


@pytest.fixture(params=[place_regular, place_path_file, place_src_layout, place_finder, place_unlisted])
def installed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Layout]:
    """A distribution that is installed in one of several ways, with other modules beside its own."""
    modules = set(sys.modules)
    for name in ("path", "meta_path"):
        monkeypatch.setattr(sys, name, [*getattr(sys, name)])
    site_packages = tmp_path / "site-packages"
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(site_packages)])
    place: Callable[[Path, Path], Layout] = request.param
    layout = place(site_packages, tmp_path / "project")
    metadata = {
        "METADATA": "Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n",
        "entry_points.txt": "[peekbench]\nplug = plug_method\n",
        **({"RECORD": "".join(f"{name},,\n" for name in layout.recorded)} if layout.recorded else {}),
    }
    files = {
        **{layout.path(name): text for name, text in {**OWN, **UNUSED}.items()},
        **{site_packages / name: text for name, text in {**OUTSIDE, "plug_space/foreign.py": ""}.items()},
        **{site_packages / "plug-1.0.dist-info" / name: text for name, text in metadata.items()},
    }
    for path, text in files.items():
        write(path, text)
    layout.path("plug_package/inner/loop").symlink_to(layout.path("plug_package"), target_is_directory=True)
    site.addsitedir(str(site_packages))
    invalidate_caches()
    registry.installed.cache_clear()
    yield layout
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    monkeypatch.undo()
    registry.installed.cache_clear()
    registry.load_installed.cache_clear()


def test_code_of_a_plugin_is_the_same_for_all_kinds_of_installations(installed: Layout, tmp_path: Path) -> None:
    code = code_hashes(["plug.m"])["plug"]
    assert sorted(code["files"]) == sorted({**OWN, **OUTSIDE})
    assert code["files"]["plug_helper.py"] == hashlib.sha256(OWN["plug_helper.py"].encode()).hexdigest()[:12]
    assert json.loads(json.dumps(code)) == code
    assert "plug_helper" in sys.modules
    assert "plug_reference" not in sys.modules, "nothing is imported"
    for name in [*OWN, *UNUSED]:
        path = installed.path(name)
        path.write_text(path.read_text() + "# changed")
        change = describe_code_change(code, changed := code_hashes(["plug.m"])["plug"])
        assert change == ("" if name in UNUSED else f"{name} changed")
        code = changed
    (tmp_path / "site-packages" / "plug_open" / "inner" / "new.py").write_text("")
    installed.path("plug_package/inner/deep.py").unlink()
    change = describe_code_change(code, code_hashes(["plug.m"])["plug"])
    assert change == "plug_open/inner/new.py added, plug_package/inner/deep.py removed"


@pytest.mark.parametrize("installed", [place_unlisted_site_packages], indirect=True)
@pytest.mark.usefixtures("installed")
def test_modules_beside_an_unlisted_plugin_in_site_packages_may_belong_to_others() -> None:
    named = {"plug_method.py", "plug_reference.py", *(name for name in OWN if name.startswith("plug_space/pins/"))}
    assert code_hashes(["plug.m"])["plug"]["files"].keys() == {*named, *OUTSIDE}


def test_code_of_a_plugin_in_an_archive_is_that_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(tmp_path / "plugins.zip", "w") as archive:
        archive.writestr("plug_in_archive/__init__.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "plugins.zip"))
    unit = find_unit("plug_in_archive")
    assert unit is not None
    assert dict(unit.files()) == {"plugins.zip": tmp_path / "plugins.zip"}


@pytest.mark.parametrize("installed", [place_regular], indirect=True)
@pytest.mark.usefixtures("installed")
def test_declared_packages_must_be_installed() -> None:
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
