"""Finds out which modules belong to the distribution of a plugin, without importing any of them."""

from __future__ import annotations

import ast
import re
import site
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint
from itertools import accumulate
from pathlib import Path

from peekbench.execution.module_files import SUFFIXES, find_unit

FINDER = re.compile(r"__editable__.*_finder\.py")


@dataclass(frozen=True, slots=True)
class OwnModules:
    """The modules of one distribution, as far as its installation tells.

    Examples
    --------
    >>> "my_plugin.helper" in OwnModules(recorded=frozenset({"my_plugin", "my_plugin.helper"}))
    True
    """

    recorded: frozenset[str] = frozenset()
    """Names of the modules and packages that the installer copied."""
    mapped: Mapping[str, Path] = field(default_factory=dict)
    """Paths of modules and packages, without suffix, that an editable installation maps to names."""
    folders: tuple[Path, ...] = ()
    """Folders from which an editable installation imports."""

    def __contains__(self, module: str) -> bool:
        """Return whether a module or package belongs to the distribution."""
        if module in self.recorded or any(_exists(folder, module) for folder in self.folders):
            return True
        prefixes = [name for name in accumulate(module.split("."), "{}.{}".format) if name in self.mapped]
        return any(_exists(self.mapped[name], module[len(name) + 1 :]) for name in prefixes)


def _exists(folder: Path, module: str) -> bool:
    """Return whether a module or package exists below a folder; if no module is given, whether the path itself is one.

    Parameters
    ----------
    folder
        Folder, or path of a module without its suffix.
    module
        Name such as 'package.module', or empty.
    """
    path = folder.joinpath(*module.split(".")) if module else folder
    return path.is_dir() or any(path.with_name(f"{path.name}{suffix}").is_file() for suffix in SUFFIXES)


def find_own_modules(point: EntryPoint) -> OwnModules:
    """Return the modules that belong to the distribution of a plugin.

    An installer lists the files that it copies. For an editable installation, these are a `.pth` file that names
    folders, or a finder of setuptools that maps names to paths. If neither tells where the plugin's own module is, the
    modules beside it belong to the distribution, except in `site-packages`.

    Parameters
    ----------
    point
        Entry point of the plugin.
    """
    own = _read_installation(point.dist) if point.dist else OwnModules()
    unit = find_unit(point.module)
    if unit is None or unit.name in own:
        return own
    shared = {Path(folder).resolve() for folder in (*site.getsitepackages(), site.getusersitepackages())}
    beside = () if unit.import_folder.resolve() in shared else (unit.import_folder,)
    return OwnModules(own.recorded, own.mapped, (*own.folders, *beside))


def _read_installation(distribution: Distribution) -> OwnModules:
    """Read the list of installed files, and what those of an editable installation say."""
    recorded: set[str] = set()
    mapped: dict[str, Path] = {}
    folders: dict[Path, None] = {}
    for file in distribution.files or ():
        stem, dot, suffix = file.name.partition(".")
        path = Path(str(file.locate()))
        if file.suffix == ".pth" and path.is_file():
            folders |= dict.fromkeys(_read_path_file(path))
        elif FINDER.fullmatch(file.name) and path.is_file():
            mapped |= _read_finder(path)
        elif dot + suffix in SUFFIXES:
            names = [*file.parts[:-1], *([] if stem == "__init__" else [stem])]
            if all(name.isidentifier() for name in names):
                recorded.update(accumulate(names, "{}.{}".format))
    return OwnModules(frozenset(recorded), mapped, tuple(folders))


def _read_path_file(path: Path) -> Iterator[Path]:
    """Iterate over the folders that a `.pth` file adds to the search path."""
    for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        if line.strip() and not line.startswith(("#", "import ", "import\t")):
            yield path.parent / line.strip()


def _read_finder(path: Path) -> dict[str, Path]:
    """Return the paths by name in the constant `MAPPING` of a finder that setuptools has written."""
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id == "MAPPING" and node.value is not None:
                return {name: Path(place) for name, place in ast.literal_eval(node.value).items()}
    return {}
