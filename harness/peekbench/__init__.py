"""peekbench: does a method score higher because the unlabeled text it adapts to was the test set's?

Names are imported when first used, so that `import peekbench` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peekbench.alt_texts import alt_text
    from peekbench.analysis import analyze
    from peekbench.auditing import audit
    from peekbench.cache import read_cached, replacing, write_cached
    from peekbench.data import hash_rows, load_dataset
    from peekbench.duplicates import group_duplicates, keep_first
    from peekbench.effects import Configuration, Configurations, configurations, control_outcome, decide, plain_cell
    from peekbench.entries import (
        AnalyzerEntry,
        AuditEntry,
        DataSourceEntry,
        ExecutorEntry,
        MethodEntry,
        PainterEntry,
        TaskGroupEntry,
    )
    from peekbench.errors import DataError, PeekbenchError, SpecError, UnavailableError
    from peekbench.execute import run
    from peekbench.figures import (
        Axis,
        Curve,
        Curves,
        Densities,
        Figure,
        Forest,
        Interval,
        Sample,
        Violins,
        thinned,
    )
    from peekbench.hookspecs import hookimpl
    from peekbench.prompts import PromptFrame, frame_prompt, render_prompt
    from peekbench.protocols import THREADS_VARIABLE, Form, Options, Outcome
    from peekbench.records import (
        Analysis,
        Cell,
        Column,
        Context,
        Control,
        Dataset,
        Decision,
        DesignPoint,
        FloatArray,
        Folders,
        Inputs,
        IntArray,
        Labeled,
        PlannedDesign,
        Predictor,
        SourceRef,
        Table,
        Task,
        TaskFacts,
        TokenCounts,
        Trial,
        TrialFailure,
        TrialResult,
        Unit,
        Verdict,
        WorkItem,
    )
    from peekbench.report import write_report
    from peekbench.results import load_results
    from peekbench.spec import ExperimentSpec, load_spec
    from peekbench.wording import ScoreWords, counted, signed

_HOME = {
    "alt_text": "alt_texts",
    "analyze": "analysis",
    **dict.fromkeys(("read_cached", "replacing", "write_cached"), "cache"),
    **dict.fromkeys(("hash_rows", "load_dataset"), "data"),
    **dict.fromkeys(("group_duplicates", "keep_first"), "duplicates"),
    **dict.fromkeys(
        ("Configuration", "Configurations", "configurations", "control_outcome", "decide", "plain_cell"), "effects"
    ),
    "audit": "auditing",
    **dict.fromkeys(
        (
            "AnalyzerEntry", "AuditEntry", "DataSourceEntry", "ExecutorEntry", "MethodEntry", "PainterEntry",
            "TaskGroupEntry",
        ),
        "entries",
    ),
    **dict.fromkeys(("DataError", "PeekbenchError", "SpecError", "UnavailableError"), "errors"),
    "run": "execute",
    **dict.fromkeys(
        (
            "Axis", "Curve", "Curves", "Densities", "Figure", "Forest", "Interval", "Sample", "Violins", "thinned",
        ),
        "figures",
    ),
    "hookimpl": "hookspecs",
    **dict.fromkeys(("PromptFrame", "frame_prompt", "render_prompt"), "prompts"),
    **dict.fromkeys(("THREADS_VARIABLE", "Form", "Options", "Outcome"), "protocols"),
    **dict.fromkeys(
        (
            "Analysis", "Cell", "Column", "Context", "Control", "Dataset", "Decision", "DesignPoint", "FloatArray",
            "Folders", "Inputs", "IntArray", "Labeled", "PlannedDesign", "Predictor", "SourceRef",
            "Table", "Task", "TaskFacts", "TokenCounts", "Trial", "TrialFailure", "TrialResult", "Unit", "Verdict",
            "WorkItem",
        ),
        "records",
    ),
    "write_report": "report",
    **dict.fromkeys(("ScoreWords", "counted", "signed"), "wording"),
    "load_results": "results",
    **dict.fromkeys(("ExperimentSpec", "load_spec"), "spec"),
}  # fmt: skip

__all__ = [
    "THREADS_VARIABLE",
    "Analysis",
    "AnalyzerEntry",
    "AuditEntry",
    "Axis",
    "Cell",
    "Column",
    "Configuration",
    "Configurations",
    "Context",
    "Control",
    "Curve",
    "Curves",
    "DataError",
    "DataSourceEntry",
    "Dataset",
    "Decision",
    "Densities",
    "DesignPoint",
    "ExecutorEntry",
    "ExperimentSpec",
    "Figure",
    "FloatArray",
    "Folders",
    "Forest",
    "Form",
    "Inputs",
    "IntArray",
    "Interval",
    "Labeled",
    "MethodEntry",
    "Options",
    "Outcome",
    "PainterEntry",
    "PeekbenchError",
    "PlannedDesign",
    "Predictor",
    "PromptFrame",
    "Sample",
    "ScoreWords",
    "SourceRef",
    "SpecError",
    "Table",
    "Task",
    "TaskFacts",
    "TaskGroupEntry",
    "TokenCounts",
    "Trial",
    "TrialFailure",
    "TrialResult",
    "UnavailableError",
    "Unit",
    "Verdict",
    "Violins",
    "WorkItem",
    "alt_text",
    "analyze",
    "audit",
    "configurations",
    "control_outcome",
    "counted",
    "decide",
    "frame_prompt",
    "group_duplicates",
    "hash_rows",
    "hookimpl",
    "keep_first",
    "load_dataset",
    "load_results",
    "load_spec",
    "plain_cell",
    "read_cached",
    "render_prompt",
    "replacing",
    "run",
    "signed",
    "thinned",
    "write_cached",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that is its home (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'peekbench' has no attribute {name!r}")
    return getattr(import_module(f"peekbench.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
