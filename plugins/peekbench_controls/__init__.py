"""Methods whose bias is known beforehand: none at all, and one that is planted. What finds other sizes is wrong."""

from __future__ import annotations

from pydantic import Field

from peekbench import MethodEntry, Options, hookimpl
from peekbench_controls.leak import leak
from peekbench_controls.null import null


class Leak(Options):
    share: float = Field(default=0.25, ge=0, le=1)
    """Share of the unlabeled texts whose labels the method knows."""


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    return [
        MethodEntry(
            name="null",
            method=null,
            summary="negative control: ignores unlabeled texts, so boost and bias are exactly 0",
            base="null",
            control="negative",
        ),
        MethodEntry(
            name="leak",
            options=Leak,
            method=leak,
            summary="positive control: knows labels of unlabeled texts, so bias is share x (1 - accuracy)",
            unlabeled_options=frozenset({"share"}),
            metrics={"planted_gain": "share of the unlabeled texts that it gets right only because it knows them"},
            base="null",
            control="positive",
        ),
    ]
