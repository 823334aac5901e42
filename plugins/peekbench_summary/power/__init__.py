"""Power analysis: the smallest bias that a design detects, the sources of its variance, and the cheapest design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench.records.scores import SCORE_NAMES, ScoreName
from peekbench.results import default_region


class Power(Options):
    """Options of the analysis `power`."""

    score: ScoreName = "score"
    """Score of which a bias is to be detected: 'score' (accuracy, R^2 or, in language modeling, the log-likelihood),
    'macro_f1', 'log_loss', 'brier' or 'bits_per_byte', if all results have it. The defaults of `target_bias`, `region`
    and `biases` are in its unit."""
    target_bias: float = Field(default=0.005, gt=0)
    """Bias that a design should detect; 0.005 is half an accuracy point, 0.01 is the default for the log loss."""
    power: float = Field(default=0.8, gt=0.05, lt=1)
    """Probability of detecting a bias that is as large as the minimum detectable bias."""
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Error rate of the verdicts: one minus the option `level` of `summary`, for all configurations that are judged
    together and all looks at the run."""
    region: float = Field(default=0.005, gt=0)
    """Half-width of the region of practical equivalence, as in `summary`, for forecasts of the verdict 'equivalent'."""
    pilot_confidence: float = Field(default=0.8, ge=0.5, lt=1)
    """Planned designs use the upper confidence limit of the measured variance at this level, because a small pilot run
    measures the noise poorly."""
    biases: tuple[Annotated[float, Field(gt=0)], ...] = (0.005, 0.01, 0.02)
    """Biases for which to compute the power."""
    tasks: tuple[Annotated[int, Field(ge=2)], ...] = ()
    """Numbers of tasks of planned designs; by default the number in the results."""
    subsamples: tuple[Annotated[int, Field(ge=2)], ...] = (5, 10, 20, 50, 100, 200, 500)
    """Numbers of subsamples per task of planned designs."""
    num_test: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Test sizes of planned designs; by default all measured sizes."""

    @model_validator(mode="before")
    @classmethod
    def _follow_the_score(cls, values: Any) -> Any:
        """Scale the defaults that are in the unit of the score."""
        if not isinstance(values, Mapping) or values.get("score") not in SCORE_NAMES:
            return values
        region = default_region(values["score"])
        return {"target_bias": region, "region": region, "biases": (region, 2 * region, 4 * region), **values}


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analysis and its forecast."""
    return [
        AnalyzerEntry(
            name="power",
            options=Power,
            analyze="peekbench_summary.power.analysis:analyze_power",
            forecast="peekbench_summary.power.forecast:forecast",
            summary="variance components, the minimum detectable bias of this design and others, the cheapest design",
        )
    ]
