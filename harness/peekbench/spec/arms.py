"""Arms of a trial: rules for the unlabeled texts of fits.

| arm | texts that a fit adapts to | texts that it predicts |
|---|---|---|
| `base` | none | the test set |
| `extra` | the extra set | the test set |
| `test` | the test set | the test set |
| `mix: p` | the share p of the test set, and extra texts instead of the rest | the test set |
| `cross: K` | the test set without one of K blocks | that block |
| `prequential: K` | the blocks of the test set before block i of K | block i |
| `stream: K` | the first i of K blocks of the test set | block i |
| `blocks: K` | one of K blocks of the test set | that block |
| `swap-in: K` | the extra set, with one of its K blocks replaced by a block of the test set | that block |

With `design.folds: K`, a fit adapts to the test set without one of K folds, and predicts the whole test set:

| arm | texts that a fit adapts to | texts that it predicts |
|---|---|---|
| `extra` | the test set without fold k | fold k |
| `test` | the test set without fold k | the other folds |
| `all` | the test set | the test set |

`batches: K` and `alone` change what is predicted together: the fits are those of `extra`, and each of K batches, or
each text, is predicted by itself.

If `design.num_unlabeled` exceeds `num_test`, further texts follow in every fit with unlabeled texts, the same in all.

`leave-one-out`, `single`, `alone`, `prequential` and `swap-in` are `cross`, `blocks`, `batches`, `prequential` and
`swap-in` with blocks of one text.

To add an arm with blocks, add an entry to `BLOCK_RULES`, and its fits to `execution/fit_plans.py`.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, model_serializer

from peekbench.formatting import pluralize
from peekbench.spec.design import SpecModel
from peekbench.spec.error_messages import problem

DOSE_DIGITS = 4  # decimals of a dose; they are part of the arm's name


@dataclass(frozen=True, slots=True)
class BlockRule:
    """What is known of a kind of arm that divides the test set into blocks."""

    summary: str
    """What a fit adapts to, for the schema of specs."""
    of_single_texts: str = ""
    """Name of the arm with blocks of one text; empty if there is none."""


BLOCK_RULES = {
    "cross": BlockRule("Blocks, each predicted by a fit to all other blocks.", "leave-one-out"),
    "prequential": BlockRule(
        "Blocks, each predicted by a fit to all earlier blocks, the first as base.", "prequential"
    ),
    "stream": BlockRule("Blocks, each predicted by a fit to it and all earlier blocks."),
    "blocks": BlockRule("Blocks, each predicted by a fit to it alone.", "single"),
    "batches": BlockRule("Blocks, each predicted by itself, by the fits of extra.", "alone"),
    "swap-in": BlockRule("Blocks, each predicted by a fit to extra texts and it.", "swap-in"),
}
"""Arms with blocks by kind, in the order of reports."""
OF_SINGLE_TEXTS = {kind: rule.of_single_texts for kind, rule in BLOCK_RULES.items() if rule.of_single_texts}
"""Kind to the name of its arm with blocks of one text."""
RULE = re.compile(rf"(?:{'|'.join(BLOCK_RULES)})-(?:[2-9]|[1-9]\d+)|{'|'.join(OF_SINGLE_TEXTS.values())}")
"""Names of the arms that are rules of adaptation."""
MAX_FITS = 1000
"""Fits of one arm in a trial, at most. A trial of a method that takes 10 ms per fit then takes 10 s for the arm."""


class Arm(SpecModel):
    """A rule for the unlabeled texts of fits."""

    kind: str
    """'base', 'extra', 'test', 'mix' or one of `BLOCK_RULES`."""
    mix: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the extra texts that test texts replace in a dose."""
    blocks: Annotated[int, Field(ge=2)] | None = None
    """Blocks of consecutive texts into which a test set is divided; None for blocks of one text."""

    @property
    def name(self) -> str:
        """Name in tables: 'base', 'extra', 'test', or, for example, 'mix-0.25', 'cross-5' or 'single'."""
        if self.kind == "mix":
            return f"mix-{self.mix:.{DOSE_DIGITS}f}".rstrip("0")
        if self.blocks is None:
            return OF_SINGLE_TEXTS.get(self.kind, self.kind)
        return f"{self.kind}-{self.blocks}"

    @property
    def is_rule(self) -> bool:
        """Whether the arm is a rule of adaptation, which divides the test set into blocks."""
        return self.kind in BLOCK_RULES

    def num_peeked(self, num_test: int) -> int:
        """Return the number of test texts in a dose."""
        return round(self.mix * num_test)

    def num_blocks(self, num_test: int) -> int:
        """Return the number of blocks of a test set, each of which takes a fit; 1 for arms without blocks."""
        if not self.is_rule:
            return 1
        return self.blocks or num_test

    def find_problem(self, num_test: int, num_scored: int) -> str:
        """Return why a design cannot have the arm, and the remedy; empty if it can."""
        peeked, blocks = self.num_peeked(num_test), self.num_blocks(num_test)
        same = {0: EXTRA.name, num_test: TEST.name}.get(peeked)
        if self.kind == "mix" and same:
            return f"has {peeked} of the test texts, as the arm {same}; use a larger num_test, or another share"
        if self.is_rule and not 2 <= blocks <= num_test:
            return f"has {blocks} blocks; use 2 to {num_test}, or a larger num_test"
        fits = num_scored * blocks
        if fits > MAX_FITS and self.kind != "batches":  # which has no fits of its own
            return (
                f"takes {fits:,} fits of each method in each trial, one for each of {blocks:,} blocks of "
                f"{pluralize(num_scored, 'set')}, and at most {MAX_FITS:,} are allowed; use fewer blocks, such as "
                f"`{self.kind}: 20`, or a smaller num_test"
            )
        return ""

    def blocks_of(self, num_test: int) -> list[tuple[int, int]]:
        """Return the first and the last position of each block, the last one excluded; sizes differ by at most one."""
        return split(num_test, self.num_blocks(num_test))

    @model_serializer
    def _as_written(self) -> str | dict[str, float] | dict[str, int]:
        if self.kind == "mix":
            return {"mix": self.mix}
        if self.blocks is None:
            return self.name
        return {self.kind: self.blocks}


def split(size: int, parts: int) -> list[tuple[int, int]]:
    """Return the first and the last position of each part of a set, the last one excluded; sizes differ by at most one.

    Examples
    --------
    >>> split(5, 2)
    [(0, 2), (2, 5)]
    """
    ends = [size * part // parts for part in range(parts + 1)]
    return list(pairwise(ends))


BASE, EXTRA, TEST, ALL_TEXTS = Arm(kind="base"), Arm(kind="extra"), Arm(kind="test"), Arm(kind="all")
WITH_FOLDS = (BASE, EXTRA, TEST, ALL_TEXTS)
"""Arms of a design with folds, by default."""
NAMED = {arm.name: arm for arm in (*WITH_FOLDS, *(Arm(kind=kind) for kind in OF_SINGLE_TEXTS))}
"""Arms without a number, by name."""


def _read_arm(value: Any) -> Any:
    match value:
        case Arm():
            return value
        case str() if value in NAMED:
            return NAMED[value]
        case str() if value in BLOCK_RULES:
            raise ValueError(f"{value!r} needs a number of blocks; write `{value}: 5`")
        case Mapping() if len(value) == 1:
            ((kind, number),) = value.items()
            if kind == "mix":
                return _read_dose(number)
            if kind in BLOCK_RULES:
                return _read_blocks(kind, number)
    raise ValueError(
        f"{reprlib.repr(value)} is not an arm; arms are {', '.join(NAMED)}, doses such as `mix: 0.25`, and blocks such "
        "as `cross: 5`"
    )


def _read_dose(share: Any) -> Arm:
    if isinstance(share, float) and 0 < share < 1:
        if round(share, DOSE_DIGITS) != share:
            raise problem(f"{share!r} has more than {DOSE_DIGITS} decimals; round it", "mix")
        return Arm(kind="mix", mix=share)
    raise problem(f"{share!r} is not a share between 0 (the arm extra) and 1 (the arm test)", "mix")


def _read_blocks(kind: Any, number: Any) -> Arm:
    if isinstance(number, int) and not isinstance(number, bool) and number >= 2:
        return Arm(kind=kind, blocks=number)
    raise problem(f"{reprlib.repr(number)} is not a number of blocks; use 2 or more", kind)


ArmSpec: TypeAlias = Annotated[Arm, BeforeValidator(_read_arm)]
