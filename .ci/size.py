"""Prints code lines, density and files of each part of the repository, and words of the documentation, with budgets.

    python .ci/size.py [--check] [--packages]

Code lines are lines with a token that is neither a comment nor part of a docstring. Lines of the largest file are all
of its lines. Words are those of `wc -w`, so tables and code count.

Density is the number of conditional expressions per 1,000 code lines, and the numbers of nested conditional expressions
and of products of a text or list and a condition, such as `"s" * (number > 1)`. An `if` statement reads faster.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from dataclasses import astuple, dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_FILE_LINES = 500
MAX_README_WORDS = 500
MAX_DOCS_WORDS = 28_000
CONDITION = re.compile(r"(all|any|bool|can|endswith|has|have|is|isinstance|needs|not|startswith|was)(_|$)|is[a-z]+$")
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Budget:
    """A part of the repository, as patterns of paths, and what it may contain at most."""

    name: str
    folders: tuple[str, ...]
    lines: int
    files: int | None = None
    per_thousand: float | None = None
    """Conditional expressions per 1,000 code lines."""


OTHER_PACKAGES = tuple(
    f"harness/{path.name}" for path in sorted((ROOT / "harness").glob("peekbench_*")) if path.is_dir()
)
# What each part contains today. Lower a budget after a deletion, and never raise one: delete instead.
BUDGETS = (
    Budget("core", ("harness/peekbench",), 16_300, 115, 20),
    Budget("other packages of harness/", OTHER_PACKAGES, 6_500),
    Budget("plugins", ("plugins",), 14_000, 135),
    Budget("tests", ("tests",), 24_000),
    Budget("benchmarks", ("benchmarks",), 4_500),
)


@dataclass(frozen=True)
class Size:
    """Sums over some files."""

    lines: int = 0
    files: int = 0
    conditionals: int = 0
    nested: int = 0
    """Conditional expressions inside others."""
    products: int = 0
    """Products of a text or list and a condition."""

    def __add__(self, other: Size) -> Size:
        """Return the sums over the files of both."""
        return Size(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    @property
    def per_thousand(self) -> float:
        """Conditional expressions per 1,000 code lines."""
        return 1000 * self.conditionals / max(self.lines, 1)

    @classmethod
    def of(cls, source: str) -> Size:
        r"""Return the size of a module.

        Examples
        --------
        >>> Size.of("x = 1 if a else 2 if b else 3\ny = 's' * (x > 1) + '-' * 3\n")
        Size(lines=2, files=1, conditionals=2, nested=1, products=1)
        """
        nodes = list(ast.walk(ast.parse(source)))
        conditionals = [node for node in nodes if isinstance(node, ast.IfExp)]
        inner = {id(node) for outer in conditionals for node in ast.walk(outer) if node is not outer}
        return cls(
            lines=count_code(source),
            files=1,
            conditionals=len(conditionals),
            nested=sum(id(node) in inner for node in conditionals),
            products=sum(is_conditional_product(node) for node in nodes),
        )


def is_conditional_product(node: ast.AST) -> bool:
    """Return whether an expression repeats a text or list zero times or once."""
    match node:
        case ast.BinOp(left=(ast.Constant(value=str()) | ast.JoinedStr() | ast.List()), op=ast.Mult(), right=factor):
            return is_condition(factor)
        case ast.BinOp(left=factor, op=ast.Mult(), right=(ast.Constant(value=str()) | ast.JoinedStr() | ast.List())):
            return is_condition(factor)
        case _:
            return False


def is_condition(node: ast.expr) -> bool:
    """Return whether an expression is true or false, as its form or its name tells."""
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=function):
            return is_condition(function)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return CONDITION.match(name) is not None
        case ast.Subscript(value=value):
            return is_condition(value)
        case _:
            return False


def count_code(source: str) -> int:
    r"""Return the number of code lines of a module.

    Examples
    --------
    >>> count_code('x = 1  # one\n\n# nothing\ndef f():\n    "Doc."\n    return x\n')
    3
    """
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            # A string that is a statement documents the name before it.
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=last):
                docstrings.update(range(first, (last or first) + 1))
    tokens = (token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in NO_CODE)
    return len(set(chain.from_iterable(range(token.start[0], token.end[0] + 1) for token in tokens)) - docstrings)


def row(name: str, size: Size, budget: Budget | None = None) -> str:
    """Return a line of the table."""
    limits = (budget.lines, budget.files, budget.per_thousand) if budget else (None, None, None)
    of_lines, of_files, of_density = (f"of {limit:,}" if limit else "" for limit in limits)
    return (
        f"{name:38} {size.lines:6,} {of_lines:9} {size.files:4,} {of_files:6} {size.per_thousand:5.1f} {of_density:6}"
        f"{size.nested:6,} {size.products:9,}"
    )


def exceeds(size: Size, budget: Budget) -> bool:
    """Return whether files contain more than they may."""
    limits = (
        (size.lines, budget.lines),
        (size.files, budget.files),
        (size.per_thousand, budget.per_thousand),
    )
    return any(limit is not None and number > limit for number, limit in limits)


def print_words() -> list[str]:
    """Print the words of the README and of each page of the documentation; return the names of exceeded budgets."""
    pages = {path: len(path.read_text(encoding="utf-8").split()) for path in sorted((ROOT / "docs").rglob("*.md"))}
    readme, total = len((ROOT / "README.md").read_text(encoding="utf-8").split()), sum(pages.values())
    print(f"\n{'page':36} words")
    print(f"{'README.md':36} {readme:7,} of {MAX_README_WORDS:,}")
    for path, words in pages.items():
        print(f"{path.relative_to(ROOT).as_posix():36} {words:7,}")
    print(f"{'docs':36} {total:7,} of {MAX_DOCS_WORDS:,}")
    return ["README"] * (readme > MAX_README_WORDS) + ["docs"] * (total > MAX_DOCS_WORDS)


def main() -> None:
    """Print the tables; with --check, end with status 1 if a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a budget is exceeded")
    parser.add_argument("--packages", action="store_true", help="also list the packages of each part")
    arguments = parser.parse_args()
    largest: list[tuple[int, Path]] = []
    excess = []
    print(f"{'part':38} {'code lines':16} {'files':11} {'conditional, per 1,000':>14} nested  products")
    for budget in BUDGETS:
        sizes: dict[str, Size] = {}
        for folder in budget.folders:
            for path in sorted((ROOT / folder).rglob("*.py")):
                source = path.read_text(encoding="utf-8")
                parts = path.relative_to(ROOT / folder).parts
                package = f"{folder}/{parts[0]}" if len(parts) > 1 else folder
                sizes[package] = sizes.get(package, Size()) + Size.of(source)
                largest.append((source.count("\n"), path))
        total = sum(sizes.values(), Size())
        print(row(budget.name, total, budget))
        if arguments.packages:
            for package, size in sizes.items():
                print(row(f"  {package}", size))
        if exceeds(total, budget):
            excess.append(budget.name)
    num_lines, path = max(largest)
    num_above = sum(number > MAX_FILE_LINES for number, _ in largest)
    print(f"{'largest file':38} {num_lines:6,} of {MAX_FILE_LINES:<7} {path.relative_to(ROOT)}")
    if num_above:
        excess.append(f"{num_above} files above {MAX_FILE_LINES} lines")
    excess += print_words()
    if arguments.check and excess:
        sys.exit(f"over budget: {', '.join(excess)}")


if __name__ == "__main__":
    main()
