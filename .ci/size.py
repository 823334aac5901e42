"""Prints code lines and files of each part of the repository, and words of the documentation, beside their budgets.

    python .ci/size.py [--check] [--packages]

Code lines are lines with a token that is neither a comment nor part of a docstring. Lines of the largest file are all
of its lines. Words are those of `wc -w`, so tables and code count.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_FILE_LINES = 500
MAX_README_WORDS = 500
MAX_DOCS_WORDS = 35_000
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Budget:
    """A part of the repository, as patterns of paths, and what it may contain at most."""

    name: str
    folders: tuple[str, ...]
    lines: int
    files: int | None = None


OTHER_PACKAGES = tuple(
    f"harness/{path.name}" for path in sorted((ROOT / "harness").glob("peekbench_*")) if path.is_dir()
)
BUDGETS = (
    Budget("core", ("harness/peekbench",), 13_500, 130),
    Budget("other packages of harness/", OTHER_PACKAGES, 4_000),
    Budget("plugins", ("plugins",), 12_000, 150),
    Budget("tests", ("tests",), 20_000),
    Budget("benchmarks", ("benchmarks",), 4_000),
)


def count_code(source: str) -> int:
    r"""Return the number of code lines of a module.

    Examples
    --------
    >>> count_code('x = 1  # one\\n\\n# nothing\\ndef f():\\n    "Doc."\\n    return x\\n')
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


def row(name: str, lines: int, max_lines: int | None, files: int, max_files: int | None) -> str:
    """Return a line of the table."""
    of_lines, of_files = (f"of {limit:,}" if limit else "" for limit in (max_lines, max_files))
    return f"{name:28} {lines:7,} {of_lines:10} {files:5,} {of_files}".rstrip()


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
    print(f"{'part':28} {'code lines':18} files")
    for budget in BUDGETS:
        sizes: dict[str, list[int]] = {}
        for folder in budget.folders:
            for path in sorted((ROOT / folder).rglob("*.py")):
                source = path.read_text(encoding="utf-8")
                parts = path.relative_to(ROOT / folder).parts
                package = f"{folder}/{parts[0]}" if len(parts) > 1 else folder
                sizes.setdefault(package, []).append(count_code(source))
                largest.append((source.count("\n"), path))
        lines, files = sum(map(sum, sizes.values())), sum(map(len, sizes.values()))
        print(row(budget.name, lines, budget.lines, files, budget.files))
        if arguments.packages:
            for package, of_package in sizes.items():
                print(row(f"  {package}", sum(of_package), None, len(of_package), None))
        if lines > budget.lines or files > (budget.files or files):
            excess.append(budget.name)
    num_lines, path = max(largest)
    num_above = sum(number > MAX_FILE_LINES for number, _ in largest)
    print(f"{'largest file':28} {num_lines:7,} of {MAX_FILE_LINES:<7} {path.relative_to(ROOT)}")
    if num_above:
        excess.append(f"{num_above} files above {MAX_FILE_LINES} lines")
    excess += print_words()
    if arguments.check and excess:
        sys.exit(f"over budget: {', '.join(excess)}")


if __name__ == "__main__":
    main()
