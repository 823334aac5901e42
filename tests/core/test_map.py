"""The map in docs/design.md names every room of the core and every package, in the order of their imports."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "harness" / "peekbench"
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")


def read_block(head: str) -> str:
    """Return the lines of an indented block below its first words."""
    (block,) = re.findall(rf"^    {head} .*\n((?:(?:    .*)?\n)+)", PAGE, re.MULTILINE)
    return str(block)


def read_map() -> list[set[str]]:
    """Return the groups of rooms, from top to bottom. Rooms may import from the groups below their own."""
    groups = read_block("room").strip("\n").split("\n\n")
    return [set(re.findall(r"^    (\w+) {2,}\w", group, re.MULTILINE)) for group in groups]


def list_rooms() -> set[str]:
    """Return the packages and modules of the core, except those whose names start with an underscore."""
    paths = [path for path in CORE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    return {path.stem for path in paths if not path.stem.startswith("_")}


def find_imports(path: Path) -> Iterator[str]:
    """Yield the full names that a file imports anywhere, for type checking and inside functions too."""
    package = ".".join(path.relative_to(CORE.parent).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imported_rooms() -> set[tuple[str, str, str]]:
    """Return (file, room of the file, room that it imports) for all imports between rooms."""
    found = set()
    for path in CORE.rglob("*.py*"):
        place = path.relative_to(CORE)
        room = place.parts[0].partition(".")[0]
        if path.suffix not in (".py", ".pyi") or room.startswith("_"):
            continue
        for name in find_imports(path):
            top, _, rest = name.partition(".")
            target = rest.partition(".")[0]
            if top == "peekbench" and target != room:
                found.add((str(place), room, target))
    return found


def find_strings(path: Path) -> Iterator[str]:
    """Yield the strings in the code of a file."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def names_own_module(text: str) -> bool:
    """Return whether a text is the name of a module of this project, or of something in one."""
    if text == "peekbench" or not re.fullmatch(r"peekbench\w*(\.\w+)*(:\w+)?", text):
        return False
    place = Path(*text.partition(":")[0].split("."))
    folders = (ROOT / "harness", ROOT / "plugins")
    return any((folder / place).is_dir() or (folder / place).with_suffix(".py").is_file() for folder in folders)


def test_no_string_of_the_core_hides_an_import() -> None:
    assert names_own_module("peekbench_stats")
    assert names_own_module("peekbench.data.loading:load_dataset")
    assert not names_own_module("peekbench.tool")
    files = list(CORE.rglob("*.py"))
    assert [(path.name, text) for path in files for text in find_strings(path) if names_own_module(text)] == []


def test_four_files_import_modules_by_name() -> None:
    """They import what a plugin, a user, a stub or the list of commands names."""
    files = {str(path.relative_to(CORE)) for path in CORE.rglob("*.py") if "import_module(" in path.read_text("utf-8")}
    assert files == {"cli/app.py", "lazy.py", "plugins/local_code.py", "plugins/names.py"}


def test_the_map_names_every_room_once() -> None:
    named = [room for group in read_map() for room in group]
    assert sorted(named) == sorted(list_rooms())


def test_rooms_import_only_from_groups_below_their_own() -> None:
    level = {room: number for number, group in enumerate(read_map()) for room in group}
    imports = imported_rooms()
    assert len(imports) > 100
    assert [found for found in sorted(imports) if level[found[1]] >= level.get(found[2], -1)] == []


def test_the_map_has_the_layers_of_import_linter() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [rule for rule in settings["contracts"] if "peekbench.cli" in str(rule.get("layers"))]
    layers = [{name.strip().removeprefix("peekbench.") for name in layer.split("|")} for layer in contract["layers"]]
    assert read_map() == [layer for layer in layers if layer != {"__main__"}]


def test_the_map_names_every_library_and_plugin() -> None:
    named = set(re.findall(r"\w+", read_block("library")))
    libraries = {path.name for path in (ROOT / "harness").glob("peekbench_*/")}
    plugins = {path.name.removeprefix("peekbench_") for path in (ROOT / "plugins").glob("peekbench_*/")}
    assert len(plugins) > 20
    assert libraries | plugins <= named


def test_the_walks_name_files_that_exist() -> None:
    walks = PAGE.partition("## Walks")[2].partition("\n## ")[0]
    files = re.findall(r"`([\w/]+\.py)`", walks)
    assert len(files) > 25
    folders = (CORE, ROOT / "harness", ROOT / "plugins")
    assert [file for file in files if not any((folder / file).is_file() for folder in folders)] == []
