"""Names, hashes and headers from outside, which must be checked before they become part of a path or a request."""

from __future__ import annotations

import re

from peekbench.formatting import shorten

COMMIT = "commit"
DIGEST = "digest"
ETAG = "etag"
FILE = "file"
MAX_NAME = 1000  # characters
MAX_SHOWN = 120  # characters of a value in a message
_PATTERNS = {
    COMMIT: re.compile(r"[0-9a-f]{40}"),
    DIGEST: re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}"),
    ETAG: re.compile(r'(?:W/)?"?[0-9A-Za-z_-][0-9A-Za-z._-]{0,200}"?'),
    # Parts between single slashes, none of which is `.` or `..`, without backslashes and control characters.
    FILE: re.compile(r"(?:(?!\.{1,2}(?:/|$))[^/\\\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+(?:/(?!$)|$))+"),
}


def is_valid(kind: str, value: object) -> bool:
    """Return whether a value from outside is safe as part of a path.

    Parameters
    ----------
    kind
        `COMMIT`, the full SHA of a commit; `DIGEST`, the SHA-1 or SHA-256 of a file; `ETAG`, the value of a header; or
        `FILE`, a path inside a repository.
    value
        The value, of any type.

    Examples
    --------
    >>> is_valid(FILE, "data/train.parquet"), is_valid(FILE, "data/../../.bashrc")
    (True, False)
    """
    return isinstance(value, str) and len(value) <= MAX_NAME and _PATTERNS[kind].fullmatch(value) is not None


def quote(value: object) -> str:
    r"""Return a value from outside for a message.

    Parameters
    ----------
    value
        The value, of any type and length.

    Examples
    --------
    >>> print(quote("two\nlines"))
    'two\nlines'
    """
    return shorten(ascii(value), MAX_SHOWN)
