"""Running text that every installation has: paragraphs of docstrings of installed packages, read, not imported."""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from collections.abc import Iterator
from importlib import metadata
from inspect import cleandoc
from pathlib import Path

PACKAGES = {
    "accelerate": "accelerate",
    "fsspec": "fsspec",
    "gensim": "gensim",
    "huggingface_hub": "huggingface_hub",
    "mpmath": "mpmath",
    "networkx": "networkx",
    "peft": "peft",
    "sympy": "sympy",
    "torch": "torch",
    "transformers": "transformers",
}
"""Distributions and their packages: what peekbench's language models need brings all of them along, and none is one
that a docstrings task is made of."""
SKIPPED = frozenset({"test", "tests", "testing", "_numpy"})  # the last repeats NumPy's documentation
MIN_WORDS = 8
CODE = re.compile(r"^\s*(?:>>>|\.\.\. |```|\$ |\||[=+-]{3,}|\.\. |:\w+ )", re.MULTILINE)
MIN_LETTERS = 0.7  # of a paragraph's characters


def fingerprint() -> str:
    """Identifies the packages' sources, by the digests that were written down when they were installed."""
    digest = hashlib.sha256()
    for distribution in sorted(PACKAGES):
        record = metadata.distribution(distribution).read_text("RECORD") or metadata.version(distribution)
        lines = sorted(line for line in record.splitlines() if ".py,sha256" in line)
        digest.update(f"{distribution}\n{chr(10).join(lines) or record}\n".encode())
    return digest.hexdigest()


def paragraphs() -> list[str]:
    """Every paragraph of running text, each once, in the order of files."""
    found: dict[str, None] = {}
    for distribution, package in sorted(PACKAGES.items()):
        root = Path(str(metadata.distribution(distribution).locate_file(package)))
        for path in sorted(root.rglob("*.py")):
            if SKIPPED.isdisjoint(path.relative_to(root).parts):
                found.update(dict.fromkeys(_of_file(path)))
    return list(found)


def _of_file(path: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escape sequences, which are the package's own business
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # a template, say; there is enough without it
            return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield from _of_docstring(first.value.value)


def _of_docstring(docstring: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", cleandoc(docstring)):
        text = " ".join(block.split())
        letters = sum(character.isalpha() or character == " " for character in text)
        if len(text.split()) >= MIN_WORDS and not CODE.search(block) and letters > MIN_LETTERS * len(text):
            yield text.replace("`", "")


def version(distribution: str) -> str:
    """The installed version."""
    return metadata.version(distribution)
