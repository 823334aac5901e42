"""The files whose code results depend on, for all ways to install a plugin."""

from __future__ import annotations

import hashlib
import json
import site
import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from peekbench.execution.provenance import describe_code
from peekbench.plugins import registry
from peekbench.plugins.names import locate_code
from peekbench.store.differences import Files, describe_change

METHOD = """
import json, peekbench_plug_helper, plug_unused
from functools import partial
from peekbench import MethodEntry, hookimpl
from peekbench.plugins import Preparation, Reference

@hookimpl
def peekbench_methods():
    pin = partial(Reference("plug_reference.pins:pin"), 1)
    return [MethodEntry(name="m", method="plug_method.fit:fit", preparation=Preparation(pin=pin), summary="")]
"""
OWN = {
    "plug_method/__init__.py": METHOD,
    "plug_method/fit.py": "wrong syntax,",
    f"plug_method/inner/fast{EXTENSION_SUFFIXES[-1]}": "no Python",
    "plug_method/inner/deep.py": "",
    "plug_reference/pins.py": """
def pin():
    import no_such_module, peekbench_plug_deeper.inner
    from peekbench_space import used
""",
    "peekbench_plug_helper.py": "",
    "peekbench_plug_deeper/inner.py": "from peekbench_plug_helper import x",
    "peekbench_space/used/part.py": "",
    "peekbench_space/used/__init__.py": "",
}
UNUSED = {
    "plug_unused.py": "",
    "tests/test_method.py": "",
    "peekbench_space/unused/__init__.py": "",
    "plug_method/data.json": "",
    "plug_method/.#deep.py": "",
    "plug_method/old-copy.py": "",
    "plug_method/__pycache__/deep.cpython-311.pyc": "",
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder with the files of a distribution in an editable installation."""
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    site_packages = tmp_path / "site-packages"
    folder = tmp_path / "project" / "src"
    for name, text in {**OWN, **UNUSED}.items():
        write(folder / name, text)
    write(site_packages / "plug-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    write(site_packages / "plug-1.0.dist-info/entry_points.txt", "[peekbench]\nplug = plug_method\n")
    write(site_packages / "_plug.pth", f"{folder}\n")
    site.addsitedir(str(site_packages))
    invalidate_caches()
    registry.installed.cache_clear()
    yield folder
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    monkeypatch.undo()
    registry.installed.cache_clear()
    registry.load_installed.cache_clear()


def test_code_of_a_plugin_is_that_of_its_packages(installed: Path) -> None:
    code = describe_code(["plug.m"])["plug"]
    assert sorted(code) == sorted(OWN)
    assert code["plug_method/fit.py"] == hashlib.sha256(b"wrong syntax,").hexdigest()[:16]
    assert json.loads(json.dumps(code)) == code
    assert "plug_reference" not in sys.modules, "nothing is imported"
    for name in [*OWN, *UNUSED]:
        path = installed / name
        path.write_text(path.read_text() + "# changed")
        change = describe_change(code, changed := describe_code(["plug.m"])["plug"])
        assert change == ("" if name in UNUSED else f"{name} changed")
        code = changed
    (installed / "plug_method/inner/new.py").write_text("")
    (installed / "plug_method/inner/deep.py").unlink()
    change = describe_change(code, describe_code(["plug.m"])["plug"])
    assert change == "plug_method/inner/deep.py removed, plug_method/inner/new.py added"


def test_code_of_a_file_includes_the_modules_beside_it_that_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[Files] = []
    for folder in (tmp_path / "here", tmp_path / "there"):
        write(folder / "mine.py", "import own_helper, json\ndef fit(train):\n    ...")
        write(folder / "own_helper.py", "from own_package import part")
        write(folder / "own_package/part.py", "")
        write(folder / "unused.py", "")
        use = locate_code("mine.py:fit", folder)
        with monkeypatch.context() as patch:  # no process has both copies
            patch.setattr(sys, "path", [*sys.path])
            codes += describe_code([use]).values()
        sys.modules.pop("own_helper")
        sys.modules.pop("own_package")
    assert codes[0] == codes[1], "stores from two copies of a project can be compared"
    assert sorted(codes[0]) == ["mine.py", "own_helper.py", "own_package/part.py"]
    write(tmp_path / "there/mine.py", "import own_helper, json\ndef fit(train):\n    return")
    assert describe_change(codes[1], *describe_code([use]).values()) == "mine.py changed"


def test_code_of_a_first_party_plugin_includes_shared_libraries_but_not_the_core() -> None:
    code = describe_code(["finetune.tapt", "controls.null"])
    packages = {plugin: {name.split("/")[0] for name in code[plugin]} for plugin in code}
    assert packages == {
        "finetune": {"peekbench_finetune", "peekbench_lm", "peekbench_hub"},
        "controls": {"peekbench_controls"},
    }
