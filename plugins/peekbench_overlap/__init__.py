"""Plugin ``overlap``: an audit that searches corpora for the texts of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from peekbench import Options, hookimpl
from peekbench.plugins import AuditEntry


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str | int | Path) else value


class Ngram(Options):
    """Where to search for the texts, and what counts as found."""

    n: Annotated[tuple[int, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = (8, 13)
    """Words per n-gram, or several numbers, each with its own result."""
    corpora: Annotated[tuple[Path, ...], BeforeValidator(_as_tuple)] = ()
    """Corpus files in UTF-8, for example the training data of a model: .txt, .md, .jsonl, .csv, .tsv or .parquet, text
    formats also compressed as .gz. A pattern such as `shards/*.jsonl.gz` names several files that form one corpus. A
    relative path starts at the spec's folder."""
    fields: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    """Columns of CSV, TSV and Parquet corpora, and keys of JSON Lines, that contain text. Default: all that contain
    text."""
    min_share: float = Field(default=0.7, gt=0, le=1)
    """A text is found if at least this share of its n-grams occurs in the corpus. N-grams that several texts of the
    task share do not count."""
    unseen: str = ""
    """Name of a task of the spec whose texts resemble the other tasks' and cannot be in the corpora, for example
    because they are more recent. A task is exposed if the corpora contain its texts more often than these."""
    clean_share: float = Field(default=0.1, ge=0, lt=1)
    """Without `unseen`: largest share of texts that a corpus without the task may contain, as quotations or
    coincidences. A task is exposed if the share of texts found is larger."""
    level: float = Field(default=0.99, gt=0, lt=1)
    """Confidence level. A task is exposed if the adjusted p-value is at most 1 - level."""

    @field_validator("n")
    @classmethod
    def _check_n(cls, n: tuple[int, ...]) -> tuple[int, ...]:
        if min(n) < 2:
            raise ValueError(f"n-grams of {min(n)} words are too short; give numbers from 2")
        if len(set(n)) < len(n):
            raise ValueError(f"{list(n)} contains a duplicate number; remove it")
        return tuple(sorted(n))


@hookimpl
def peekbench_audits() -> list[AuditEntry]:
    """Register the audit of n-gram overlap."""
    return [
        AuditEntry(
            name="ngram",
            options=Ngram,
            audit="peekbench_overlap.ngram:ngram",
            summary="search the task's other rows, its train split and corpus files for the texts, by n-grams of words",
        )
    ]
