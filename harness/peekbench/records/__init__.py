"""The records that flow through peekbench: frozen, slotted dataclasses without behavior.

`data` describes tasks and their rows, `trials` the work and its outcomes, `analysis` what analyses return,
`figures` what they ask to have drawn, and `units` how a number is shown. Accuracies and other scores are fractions;
times are seconds.
numpy is imported for type checkers only, so that reading a spec stays fast.
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
