"""Bayesian hierarchical analyses of bias and boost: a calibrated model, and the models of the study."""

from __future__ import annotations

from peekbench import AnalyzerEntry, hookimpl
from peekbench_bayes.options import Hierarchical, Meta, PriorCheck, Recovery


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the Bayesian analyses."""
    return [
        AnalyzerEntry(
            name="hierarchical",
            options=Hierarchical,
            analyze="peekbench_bayes.hierarchical:analyze",
            summary="Bayesian hierarchical models: bias and boost with shrinkage over tasks, and a verdict",
        ),
        AnalyzerEntry(
            name="meta",
            options=Meta,
            analyze="peekbench_bayes.slices:analyze_slices",
            summary="refits on random slices with one subsample per task and model: how much conclusions would vary",
        ),
        AnalyzerEntry(
            name="prior_check",
            options=PriorCheck,
            analyze="peekbench_bayes.model_checks:check_priors",
            summary="simulates data of this design from the priors, and compares them with the results",
        ),
        AnalyzerEntry(
            name="recovery",
            options=Recovery,
            analyze="peekbench_bayes.model_checks:recover",
            summary="known biases in simulated data of this design: estimates, coverage and power",
        ),
    ]
