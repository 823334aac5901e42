"""How small a bias a design can detect, how noisy the paired difference is and why, and which design costs least."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench_power.forecast import forecast
from peekbench_power.power import assess


class Power(Options):
    wanted: float = Field(default=0.005, gt=0)
    """The bias that a design should detect; 0.005 is half an accuracy point."""
    power: float = Field(default=0.8, gt=0.05, lt=1)
    """Chance of detecting a bias as large as the minimum detectable one."""
    size: float = Field(default=0.05, gt=0, lt=0.5)
    """Chance of seeing a bias where there is none: the size of the two-sided test."""
    biases: tuple[Annotated[float, Field(gt=0)], ...] = (0.005, 0.01, 0.02)
    """For which the power is given."""
    tasks: tuple[Annotated[int, Field(ge=2)], ...] = ()
    """Numbers of tasks of planned designs; by default that of the results."""
    subsamples: tuple[Annotated[int, Field(ge=2)], ...] = (5, 10, 20, 50, 100, 200, 500)
    """Numbers of subsamples of planned designs."""
    num_train: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Of planned designs, with the noise of the nearest that was measured; by default all that were."""
    num_test: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Of planned designs; by default all that were measured."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    return [
        AnalyzerEntry(
            name="power",
            options=Power,
            analyze=assess,
            forecast=forecast,
            summary="variance components, the minimum detectable bias of this design and others, the cheapest design",
        )
    ]
