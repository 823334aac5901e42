"""Trackers: observers that pass a run on to MLflow or Weights & Biases.

Each writes to this machine unless its options say otherwise, and continues its own run if peekbench resumes one.
"""

from __future__ import annotations

from typing import Literal

from peekbench import Options, hookimpl
from peekbench.plugins import ObserverEntry


class MLflow(Options):
    """Options of `tracking.mlflow`."""

    uri: str = ""
    """Tracking server or database. By default, `$MLFLOW_TRACKING_URI`, or sqlite:///mlflow.db in the current folder.
    Do not write passwords here, because stores and reports contain the spec."""
    experiment: str = "peekbench"
    """Experiment of the run; it is created if it does not exist."""


class Wandb(Options):
    """Options of `tracking.wandb`."""

    project: str = "peekbench"
    """Project of the run."""
    entity: str = ""
    """User or team; by default that of your account."""
    mode: Literal["offline", "online"] = "offline"
    """offline: write into the folder `wandb`, from which `wandb sync` uploads. online: upload during the run."""


@hookimpl
def peekbench_observers() -> list[ObserverEntry]:
    """Register the trackers."""
    return [
        ObserverEntry(
            name="mlflow",
            options=MLflow,
            observe="peekbench_tracking.mlflow_tracker:MLflowTracker",
            summary="tracks runs with MLflow, in a database or on a server",
        ),
        ObserverEntry(
            name="wandb",
            options=Wandb,
            observe="peekbench_tracking.wandb_tracker:WandbTracker",
            summary="tracks runs with Weights & Biases, offline by default",
        ),
    ]
