"""Reads a package's sources, without importing it, and makes labeled texts of the docstrings."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path

from peekbench import DataError
from peekbench_docstrings.names import telling_names, without_names
from peekbench_docstrings.prose import sentences
from peekbench_docstrings.recipes import Recipe

SKIPPED_FOLDERS = frozenset({"test", "tests", "_examples", "_precompute"})


@dataclass(frozen=True, slots=True)
class Extract:
    """Labeled texts of one package, by file and position, and how many were left out."""

    texts: list[str]
    labels: list[int]
    """Positions in `Recipe.classes`."""
    too_short: int
    duplicates: int
    in_several_classes: int


def extract(recipe: Recipe, root: Path, min_characters: int, max_characters: int) -> Extract:
    """Make a task's rows.

    Of texts that are equal but for case the first is kept, and none where their classes differ.

    Parameters
    ----------
    root
        The package's folder.
    min_characters, max_characters
        Shorter texts are left out, longer ones cut after a word.

    Raises
    ------
    DataError
        Where a file cannot be parsed, or a class has no text.
    """
    everything = _texts(recipe, root, max_characters)
    found = [(text, label) for text, label in everything if len(text) >= min_characters]
    labels_of: dict[str, set[int]] = {}
    for text, label in found:
        labels_of.setdefault(text.lower(), set()).add(label)
    clear = [(text, label) for text, label in found if len(labels_of[text.lower()]) == 1]
    rows: dict[str, tuple[str, int]] = {}
    for text, label in clear:
        rows.setdefault(text.lower(), (text, label))
    labels = [label for _, label in rows.values()]
    for label, class_name in enumerate(recipe.classes):
        if label not in labels:
            raise DataError(
                f"docstrings.{recipe.task}: class {class_name!r} has no text in {root}; install a version of "
                f"{recipe.title} that comes with its Python sources"
            )
    return Extract(
        texts=[text for text, _ in rows.values()],
        labels=labels,
        too_short=len(everything) - len(found),
        duplicates=len(clear) - len(rows),
        in_several_classes=len(found) - len(clear),
    )


def _texts(recipe: Recipe, root: Path, max_characters: int) -> list[tuple[str, int]]:
    """What each docstring leaves to read, maybe nothing, and its label."""
    docstrings = [
        (label, sentences(docstring)) for label, path in _files(recipe, root) for docstring in _docstrings(path)
    ]
    names, modules = telling_names(recipe, docstrings), recipe.homes()
    roots = {recipe.package, *recipe.aliases, *modules}
    texts: list[tuple[str, int]] = []
    for label, parts in docstrings:
        readable = (without_names(sentence, names, modules, roots) for sentence in parts)
        texts.append((_cut(" ".join(filter(None, readable)), max_characters), label))
    return texts


def _files(recipe: Recipe, root: Path) -> list[tuple[int, Path]]:
    """Labels and source files, sorted by path, whatever the order in which the file system lists them."""
    files: dict[tuple[str, ...], tuple[int, Path]] = {}
    for label, modules in enumerate(recipe.classes.values()):
        for module in modules:
            folder = root / module
            for path in (folder.with_suffix(".py"), *folder.rglob("*.py")):
                parts = path.relative_to(root).parts
                if path.is_file() and SKIPPED_FOLDERS.isdisjoint(parts):
                    files[parts] = label, path
    return [files[parts] for parts in sorted(files)]


def _docstrings(path: Path) -> list[str]:
    """Docstrings of a file in the order in which they stand, those that `add_newdoc` attaches among them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escape sequences, which are the package's own business
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}; reinstall the package that it belongs to") from error
    found: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                found.append((node.body[0].lineno, node.body[0].col_offset, docstring))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("add_newdoc"):
            found.extend(
                (text.lineno, text.col_offset, cleandoc(str(text.value)))
                for argument in node.args[-1:]
                for text in _attached(argument)
            )
    return [docstring for _, _, docstring in sorted(found)]


def _attached(argument: ast.expr) -> Iterator[ast.Constant]:
    """Docstrings in the last argument of `add_newdoc`: a string, (attribute, string), or a list of such pairs."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument
    elif isinstance(argument, ast.Tuple) and argument.elts:
        yield from _attached(argument.elts[-1])
    elif isinstance(argument, ast.List):
        for pair in argument.elts:
            yield from _attached(pair)


def _cut(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[: max_characters + 1].rpartition(" ")[0]
