"""Synthetic support tickets, in which some words hint at the team that should answer."""

from __future__ import annotations

import random

from pydantic import Field

from peekbench import Dataset, DataSourceEntry, Folders, Options, hookimpl

HINTS = {
    "billing": ("invoice", "refund", "charge", "price", "discount", "receipt", "card", "payment"),
    "delivery": ("parcel", "courier", "address", "late", "lost", "tracking", "box", "damaged"),
    "account": ("password", "login", "email", "profile", "locked", "reset", "delete", "settings"),
}
FILLER = tuple(
    first + last for first in ("ba", "do", "fi", "le", "mu", "na", "si", "to") for last in ("ng", "rk", "st")
)


class Tickets(Options):
    num_rows: int = Field(default=600, ge=1)
    """Number of tickets, the same for each team."""
    hints: float = Field(default=0.2, ge=0, le=1)
    """Share of words that hint at the team. With 0, the task is impossible; with 1, it is trivial."""


def tickets(*, options: Tickets, folders: Folders) -> Dataset:
    """Return tickets of twelve words, the same on every call."""
    rng = random.Random(0)
    teams = tuple(HINTS)
    labels = [row % len(teams) for row in range(options.num_rows)]
    texts = [
        " ".join(rng.choice(HINTS[teams[label]] if rng.random() < options.hints else FILLER) for _ in range(12))
        for label in labels
    ]
    return Dataset(texts, labels, teams, instruction="Which team should answer this support ticket?")


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry]:
    return [DataSourceEntry(name="tickets", options=Tickets, load=tickets, summary="synthetic support tickets")]
