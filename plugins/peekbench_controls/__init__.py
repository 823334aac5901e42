"""Control methods whose bias is known: one without bias, and one with a planted bias. They test a run."""

from __future__ import annotations

from pydantic import Field

from peekbench import MethodEntry, Options, hookimpl
from peekbench.plugins.entries import MethodTaskKind

WITH_ANSWERS = frozenset[MethodTaskKind](
    {"classification", "tabular_classification", "multilabel", "tabular_multilabel", "generation"}
)


class Leak(Options):
    """Options of `controls.leak`."""

    share: float = Field(default=0.25, ge=0, le=1)
    """Share of the unlabeled inputs whose labels the method knows."""


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the controls."""
    return [
        MethodEntry(
            name="null",
            method="peekbench_controls.null:null",
            summary="negative control: ignores unlabeled inputs, so boost and bias are exactly 0",
            task_kinds=WITH_ANSWERS | {"regression", "language_modeling"},
            base="null",
            control="negative",
        ),
        MethodEntry(
            name="leak",
            options=Leak,
            method="peekbench_controls.leak:leak",
            summary="positive control: knows labels of unlabeled inputs, so bias is share x (1 - accuracy)",
            unlabeled_options=frozenset({"share"}),
            task_kinds=WITH_ANSWERS,
            metrics={
                "planted_gain": "share of the unlabeled inputs that are right only because their labels are known"
            },
            base="null",
            control="positive",
        ),
    ]
