"""Training texts that every installation has: paragraphs of the docstrings of installed packages.

The source files are parsed and never imported.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from collections.abc import Iterator
from importlib import metadata
from inspect import cleandoc
from pathlib import Path

import numpy as np

from peekbench.records import IntArray

PACKAGES = (
    "accelerate", "fsspec", "gensim", "huggingface_hub", "mpmath", "networkx", "peft", "sympy", "torch", "transformers",
)  # fmt: skip
"""Packages, which are distributions of the same names. The extra `lm` installs all of them, and no task of the
docstrings plugin uses one."""
SKIPPED_FOLDERS = frozenset({"test", "tests", "testing", "_numpy"})  # the last one repeats NumPy's documentation
MIN_WORDS = 8  # per paragraph
CODE = re.compile(r"^\s*(?:>>>|\.\.\. |```|\$ |\||[=+-]{3,}|\.\. |:\w+ )", re.MULTILINE)
MIN_LETTERS = 0.7  # fraction of the characters of a paragraph


def fingerprint() -> str:
    """Return a hash that identifies the source files, from the digests that the installer recorded."""
    digest = hashlib.sha256()
    for distribution in PACKAGES:
        record = metadata.distribution(distribution).read_text("RECORD") or metadata.version(distribution)
        lines = sorted(line for line in record.splitlines() if ".py,sha256" in line)
        digest.update(f"{distribution}\n{chr(10).join(lines) or record}\n".encode())
    return digest.hexdigest()


def load_paragraphs() -> list[str]:
    """Return all different paragraphs of prose, in the order of the files."""
    paragraphs: dict[str, None] = {}
    for package in PACKAGES:
        root = Path(str(metadata.distribution(package).locate_file(package)))
        for path in sorted(root.rglob("*.py")):
            if SKIPPED_FOLDERS.isdisjoint(path.relative_to(root).parts):
                paragraphs.update(dict.fromkeys(_paragraphs_of_file(path)))
    return list(paragraphs)


def split(num_paragraphs: int, num_held_out: int) -> tuple[IntArray, IntArray]:
    """Return the rows of held-out paragraphs and of the others, both in a random order that is always the same.

    Parameters
    ----------
    num_paragraphs
        Number of all paragraphs.
    num_held_out
        Number of paragraphs that no model is trained on.
    """
    order = np.random.default_rng(0).permutation(num_paragraphs)
    return order[:num_held_out], order[num_held_out:]


def versions() -> dict[str, str]:
    """Return the installed version of each distribution."""
    return {package: metadata.version(package) for package in PACKAGES}


def _paragraphs_of_file(path: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about invalid escape sequences in the packages
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # such as a template; the other files are enough
            return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield from _paragraphs_of_docstring(first.value.value)


def _paragraphs_of_docstring(docstring: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", cleandoc(docstring)):
        text = " ".join(block.split())
        num_letters = sum(character.isalpha() or character == " " for character in text)
        if len(text.split()) >= MIN_WORDS and not CODE.search(block) and num_letters > MIN_LETTERS * len(text):
            yield text.replace("`", "")
