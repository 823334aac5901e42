"""Read the sources of a package, without importing it, and convert its docstrings to labeled texts."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path

from peekbench import DataError
from peekbench_docstrings import DocstringOptions
from peekbench_docstrings.names import find_telling_names, remove_names
from peekbench_docstrings.prose import extract_sentences
from peekbench_docstrings.recipes import Recipe

SKIPPED_FOLDERS = frozenset({"test", "tests", "_examples", "_precompute"})


@dataclass(frozen=True, slots=True)
class Extract:
    """The labeled texts of one package, and how many texts were dropped."""

    texts: list[str]
    """Texts, sorted by file and position."""
    labels: list[int]
    """Class of each text, as a position in `Recipe.classes`."""
    too_short: int
    """Number of texts dropped because they are too short."""
    duplicates: int
    """Number of texts dropped because an earlier text of the same class is equal, or nearly so."""
    in_several_classes: int
    """Number of texts dropped because an equal text, or a nearly equal one, has another class."""


def extract(recipe: Recipe, root: Path, options: DocstringOptions) -> Extract:
    """Make the rows of a task.

    Of several texts that differ only in case, or are nearly equal, the first is kept; if their classes differ, none is.

    Parameters
    ----------
    recipe
        Package and classes of the task.
    root
        Folder of the package.
    options
        Length of the texts, and which duplicates are dropped.

    Raises
    ------
    DataError
        If a file cannot be parsed, or a class has no text.
    """
    all_texts = _extract_texts(recipe, root, options.max_characters)
    long_enough = [(text, label) for text, label in all_texts if len(text) >= options.min_characters]
    labels_of: dict[str, set[int]] = {}
    for text, label in long_enough:
        labels_of.setdefault(text.lower(), set()).add(label)
    unambiguous = [(text, label) for text, label in long_enough if len(labels_of[text.lower()]) == 1]
    distinct: dict[str, tuple[str, int]] = {}
    for text, label in unambiguous:
        distinct.setdefault(text.lower(), (text, label))
    rows = list(distinct.values())
    duplicates, in_several_classes = len(unambiguous) - len(rows), len(long_enough) - len(unambiguous)
    if options.drop_duplicates == "near":
        rows, num_similar, num_conflicting = _drop_similar(rows)
        duplicates, in_several_classes = duplicates + num_similar, in_several_classes + num_conflicting
    labels = [label for _, label in rows]
    for label, class_name in enumerate(recipe.classes):
        if label not in labels:
            raise DataError(
                f"docstrings.{recipe.task}: class {class_name!r} has no text in {root}; install a version of "
                f"{recipe.title} that includes its Python sources"
            )
    return Extract(
        texts=[text for text, _ in rows],
        labels=labels,
        too_short=len(all_texts) - len(long_enough),
        duplicates=duplicates,
        in_several_classes=in_several_classes,
    )


def _drop_similar(rows: list[tuple[str, int]]) -> tuple[list[tuple[str, int]], int, int]:
    """Return the first row of each group of similar texts, unless their classes differ, and count both cases."""
    import numpy as np  # noqa: PLC0415 - tasks load without numpy unless near duplicates are dropped

    from peekbench.data import group_duplicates  # noqa: PLC0415 - it imports numpy

    groups = group_duplicates([text for text, _ in rows], "near")
    labels = np.array([label for _, label in rows])
    is_mixed = np.zeros(len(groups), dtype=bool)
    is_mixed[groups[labels != labels[groups]]] = True
    is_kept = (groups == np.arange(len(groups))) & ~is_mixed
    kept = [row for row, keep in zip(rows, is_kept.tolist(), strict=True) if keep]
    num_conflicting = int((~is_kept[groups]).sum())
    return kept, len(rows) - len(kept) - num_conflicting, num_conflicting


def _extract_texts(recipe: Recipe, root: Path, max_characters: int) -> list[tuple[str, int]]:
    """Return the readable text of each docstring, which may be empty, and its label."""
    docstrings = [
        (label, extract_sentences(docstring))
        for label, path in _source_files(recipe, root)
        for docstring in _read_docstrings(path)
    ]
    names, modules = find_telling_names(recipe, docstrings), recipe.module_classes()
    roots = {recipe.package, *recipe.aliases, *modules}
    texts: list[tuple[str, int]] = []
    for label, sentences in docstrings:
        readable = (remove_names(sentence, names, modules, roots) for sentence in sentences)
        texts.append((_cut(" ".join(filter(None, readable)), max_characters), label))
    return texts


def _source_files(recipe: Recipe, root: Path) -> list[tuple[int, Path]]:
    """Return labels and source files, sorted by path, so that the order does not depend on the file system."""
    files: dict[tuple[str, ...], tuple[int, Path]] = {}
    for label, modules in enumerate(recipe.classes.values()):
        for module in modules:
            folder = root / module
            for path in (folder.with_suffix(".py"), *folder.rglob("*.py")):
                parts = path.relative_to(root).parts
                if path.is_file() and SKIPPED_FOLDERS.isdisjoint(parts):
                    files[parts] = label, path
    return [files[parts] for parts in sorted(files)]


def _read_docstrings(path: Path) -> list[str]:
    """Return the docstrings of a file in their order, including those that `add_newdoc` attaches."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escape sequences are for the package's authors to fix
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}; reinstall the package that it belongs to") from error
    docstrings: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                docstrings.append((node.body[0].lineno, node.body[0].col_offset, docstring))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("add_newdoc"):
            docstrings.extend(
                (text.lineno, text.col_offset, cleandoc(str(text.value)))
                for argument in node.args[-1:]
                for text in _attached_docstrings(argument)
            )
    return [docstring for _, _, docstring in sorted(docstrings)]


def _attached_docstrings(argument: ast.expr) -> Iterator[ast.Constant]:
    """Yield docstrings in the last argument of `add_newdoc`: a string, (attribute, string), or a list of such pairs."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument
    elif isinstance(argument, ast.Tuple) and argument.elts:
        yield from _attached_docstrings(argument.elts[-1])
    elif isinstance(argument, ast.List):
        for pair in argument.elts:
            yield from _attached_docstrings(pair)


def _cut(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[: max_characters + 1].rpartition(" ")[0]
