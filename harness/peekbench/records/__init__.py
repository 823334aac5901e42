"""Records that flow through peekbench: frozen, slotted dataclasses with almost no behavior.

`data` describes tasks and their rows, `trials` the work and its outcomes, `analysis` the results of analyses,
`figures` the figures to draw, `units` how numbers are shown, and `scores` the scores of an arm. Accuracies and other
scores are fractions; times are in seconds. Only `scores` imports numpy at run time, so that reading a spec stays fast.
"""

from peekbench.records.analysis import Analysis, Cell, Column, Decision, Table, Topic, Verdict
from peekbench.records.data import (
    Dataset,
    FloatArray,
    Folders,
    Inputs,
    IntArray,
    Labeled,
    SourceRef,
    Task,
    TaskFacts,
    TaskKind,
    TokenCounts,
)
from peekbench.records.trials import (
    ArmResult,
    Context,
    Control,
    DesignPoint,
    Draw,
    PlannedDesign,
    Predictor,
    Subsample,
    Trial,
    TrialFailure,
    TrialResult,
    WorkItem,
)
from peekbench.records.units import Unit

__all__ = [
    "Analysis",
    "ArmResult",
    "Cell",
    "Column",
    "Context",
    "Control",
    "Dataset",
    "Decision",
    "DesignPoint",
    "Draw",
    "FloatArray",
    "Folders",
    "Inputs",
    "IntArray",
    "Labeled",
    "PlannedDesign",
    "Predictor",
    "SourceRef",
    "Subsample",
    "Table",
    "Task",
    "TaskFacts",
    "TaskKind",
    "TokenCounts",
    "Topic",
    "Trial",
    "TrialFailure",
    "TrialResult",
    "Unit",
    "Verdict",
    "WorkItem",
]
