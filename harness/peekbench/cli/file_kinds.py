"""Tells what a file is from its content, so that messages name it, and the command that takes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeAlias

from peekbench.errors import SpecError
from peekbench.spec.analysis_only import EXPERIMENT_KEYS
from peekbench.spec.lockfile import HEAD as LOCK_HEAD
from peekbench.spec.yaml_loader import read_yaml
from peekbench.store.files import is_store

Role: TypeAlias = Literal["store", "spec", "analysis spec", "scores", "yaml", "folder", "other"]
"""What commands can do with a file."""

MAX_BYTES = 10_000_000  # of a file that is read as YAML or JSON
MAX_UNNAMED = 1_000_000  # characters of a text that may be a spec, although its name does not say so
SCORES = {
    ".csv": "a CSV file", ".tsv": "a TSV file", ".parquet": "a Parquet file",
    ".jsonl": "a JSON Lines file", ".ndjson": "a JSON Lines file",
}  # fmt: skip
BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x7fELF", "a program"),
    (b"<svg", "an SVG image"),
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
)
COMPANIONS = {"-wal": "the write-ahead log", "-shm": "the index of the write-ahead log", ".lock": "the lock"}


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is."""

    role: Role
    words: str
    """Kind of the file with its article, such as 'a PNG image'."""
    name: str = ""
    """Name of the run that a spec or the report of a run names."""
    remedy: str = ""
    """What to do instead; empty if the kind does not tell."""


STREAM = FileKind("other", "neither a file nor a folder")
"""Kind of pipes and devices, which can be read only once."""


def identify(path: Path) -> FileKind:
    """Return what an existing file or folder is.

    Parameters
    ----------
    path
        Any file or folder. At most `MAX_BYTES` of it are read.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    if path.is_dir():
        return _identify_folder(path)
    if not path.is_file():
        return STREAM
    for suffix, words in COMPANIONS.items():
        store = path.with_name(path.name.removesuffix(suffix))
        if store.name != path.name and is_store(store):
            return FileKind("other", f"{words} of the store {store}", remedy=f"give {store}")
    if is_store(path):
        return FileKind("store", "a store")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES)
    if not content:
        return FileKind("store" if path.suffix == ".sqlite" else "other", "an empty file")
    for beginning, words in BEGINNINGS:
        if content.lstrip()[: len(beginning)].lower() == beginning.lower():
            return FileKind("other", words)
    if (suffix := path.suffix.lower()) in SCORES:
        remedy = f"`peekbench analyze {quote(str(path))}` analyzes a table of scores"
        return FileKind("scores", SCORES[suffix], remedy=remedy)
    return _identify_text(path, content)


def _identify_folder(path: Path) -> FileKind:
    if (path / "report.json").is_file():
        report = identify(path / "report.json")
        return FileKind("folder", "the folder of a report", report.name, report.remedy)
    stores = sorted(file.name for file in path.glob("*.sqlite"))[:5]
    return FileKind("folder", "a folder", remedy=f"give one of its stores: {', '.join(stores)}" if stores else "")


def _identify_text(path: Path, content: bytes) -> FileKind:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1") if path.suffix in (".yaml", ".yml") else ""
    if not text or "\x00" in text:
        return FileKind("other", "a binary file")
    if text.startswith(LOCK_HEAD):
        spec = path.with_suffix(".yaml")
        return FileKind("other", "a lock file", remedy=f"give the spec beside it{f', {spec}' if spec.exists() else ''}")
    if path.suffix == ".json" and (report := _parse_json(text)).keys() >= {"schema_version", "headline", "name"}:
        name = str(report["name"])
        remedy = f"`peekbench report {quote(name)}` writes the report of the run {name!r} again"
        return FileKind("other", "the report of a run as JSON", name, remedy)
    if path.suffix == ".json" and text.lstrip().startswith("["):
        remedy = f"`peekbench analyze {quote(str(path))}` analyzes a table of scores"
        return FileKind("scores", "a JSON file", remedy=remedy)
    raw: Any = None
    is_yaml = path.suffix in (".yaml", ".yml")
    if is_yaml or len(text) < MAX_UNNAMED:
        try:
            raw = read_yaml(text, str(path))
        except SpecError:
            return FileKind("spec", "a YAML file with an error") if is_yaml else _OTHER_TEXT
    if isinstance(raw, Mapping):
        name = str(raw.get("name", ""))
        if any(key in raw for key in EXPERIMENT_KEYS):
            return FileKind("spec", "the spec of an experiment", name)
        if "analyses" in raw:
            remedy = f"`peekbench analyze FILE --spec {quote(str(path))}` analyzes scores with it"
            return FileKind("analysis spec", "a spec that only analyzes existing scores", name, remedy)
    if is_yaml or path.suffix == ".json":
        return FileKind("yaml", "YAML of another kind, without tasks and methods")
    return _OTHER_TEXT


_OTHER_TEXT = FileKind("other", "a text file")


def _parse_json(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
