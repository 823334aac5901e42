"""Check that code, messages and docs use the project's vocabulary: one term for each thing, and standard English.

Usage: ``python .ci/check_vocabulary.py [FILE ...]``; without files, every text file that git tracks. Prints each
replaced term with its place and the term to use, and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SUFFIXES = {".cff", ".css", ".ini", ".j2", ".js", ".md", ".py", ".pyi", ".sh", ".toml", ".yaml", ".yml", ""}
# The vocabulary itself, its test, and files whose words are data or other people's.
EXEMPT = re.compile(
    r"(\.ci/check_vocabulary\.py|tests/core/test_vocabulary\.py|LICENSE|constraints\.txt|.*\.svg|.*/references\.bib)"
)


class Term(NamedTuple):
    """A term that the vocabulary replaces."""

    pattern: str
    use: str


TERMS = [
    Term(r"(?<![a-z])dear(?![a-z])", "expensive"),
    Term(r"(?<![a-z])faults?(?![a-z])", "error"),
    Term(r"\bcan(not| ?not|'t) be (had|got)\b", "is unavailable"),
    Term(r"\bgot at\b", "is unavailable"),
    Term(r"\bbut for\b", "except"),
    Term(r"\bis no (finite )?(number|text|mapping|arm|array|YAML)\b", "is not a ..."),
    Term(r"\bstands? twice\b", "is duplicated"),
    Term(r"\bgetting what\b", "preparing ..."),
    Term(r"(?<![a-z])mend(s|ed|ing)?(?![a-z])", "fix, fixed"),
    Term(r"\banew\b", "again; regenerate"),
    Term(r"\bfor (want|lack) of memory\b", "out of memory"),
    Term(r"\b[Cc]aution\b", "Warning"),
    Term(r"\bsuch tasks\b|of_such_tasks|such_tasks", "other tasks"),
    Term(r"\bhonest (one|score|accuracy)\b", "uncontaminated score"),
    Term(r": good, \d", "OK: ..."),
    Term(r"\bmake_use\b|\bNamedUse\b|\bclass Use\b|peekbench\.uses\b", "component, make_component"),
    Term(r"(?<![a-z])circumstances?(?![a-z])", "determinism; conditions"),
    Term(r"\b[Pp]ainters?\b|\bPainterEntry\b|peekbench_painters", "renderer"),
    Term(r"\b[Ll]oans?\b|\bborrow(s|ed)?\b", "lease, acquire"),
    Term(r"\bthinned\b", "downsample"),
    Term(r"\bSituation\b|peekbench_lm\.situation", "ForwardContext"),
    Term(r"\bdoing\(", "patched_forward"),
    Term(r"\bheld weights\b", "weight mode"),
    Term(r"\b(bury|GRACE|LOOK|MOMENT)\b", "join; SHUTDOWN_TIMEOUT; POLL_INTERVAL; BATCH_WINDOW"),
    Term(r"\b_Bench\b", "LoadedTask"),
    Term(r"summary\.(further|finer|baselines)\b", "sample_size; probabilistic_scores; significance_tests"),
    Term(r"\bpreset[:=]? ?['\"`]?printed\b", "preset paper"),
    Term(r"\bSilence\b", "NullProgress"),
    Term(r"\bGoneError\b", "NotFoundError"),
    Term(r"\b_?(MOST|FEWEST|LEAST)(_\w+)?\b", "MAX_..., MIN_..."),
    Term(r"\b_adopt\b|\b_hand_on_bases\b", "_apply_spec, _rekey_base_arms"),
    Term(r"\bdoubts?\b", "warning"),
    Term(r"\bwhat came of (it|them)\b", "the result"),
    Term(r"\b[Cc]atalogues?\b", "catalog"),
    Term(r"\bcounted\(|(?<![\w_])signed\(", "pluralize, format_signed"),
]


def tracked_files() -> list[Path]:
    """List the text files that git tracks, except the exempt ones."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S607
    names = [name for name in listed.splitlines() if not EXEMPT.fullmatch(name)]
    return [path for name in names if (path := ROOT / name).is_file() and path.suffix in SUFFIXES]


def find_terms(path: Path) -> list[str]:
    """Describe every replaced term in a file, one line each, with its place and remedy.

    A space in a pattern also matches a line break with the indentation and comment sign of the next line.
    """
    text = path.read_text(encoding="utf-8")
    found = []
    for term in TERMS:
        for match in re.finditer(term.pattern.replace(" ", r"(?: |\n[ \t]*(?:# |> )?)"), text):
            number = text.count("\n", 0, match.start()) + 1
            found.append((number, f"{path}:{number}: {match.group()!r}: use {term.use}"))
    return [line for _, line in sorted(found)]


def main() -> int:
    """Check the files named on the command line, or all tracked ones."""
    paths = [Path(name) for name in sys.argv[1:]] or tracked_files()
    found = [line for path in paths for line in find_terms(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
