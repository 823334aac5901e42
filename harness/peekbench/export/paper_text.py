"""A paragraph for the methods section of a paper: design, trials, analyses, verdicts and versions of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from peekbench.export.content import ExportedRun
from peekbench.export.references import REFERENCES, REFERENCES_FILE
from peekbench.formatting import difference_unit, format_cell, format_signed, pluralize, score_unit
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry
from peekbench.records.estimates import ACCURACY, ScoreEstimate
from peekbench.report.build.provenance_text import MAIN_PACKAGES
from peekbench.results.paired_effects import label_configuration

CITATION = re.compile(r"<<(\w+)>>")
MAX_NAMED = 12  # tasks or methods that are named
ARM_WORDS = {
    "base": "without unlabeled text (arm base)",
    "extra": "with the extra texts (arm extra)",
    "test": "with the test texts without their labels (arm test)",
}


def write_text(run: ExportedRun, folder: Path) -> None:
    """Write the paragraph as plain text, with citations as in Markdown for Pandoc: [@dubey2024]."""
    text = fill_citations("\n\n".join(describe_run(run)), lambda key: f"[@{key}]")
    (folder / "methods.txt").write_text(text + "\n", encoding="utf-8")
    (folder / REFERENCES_FILE).write_text(REFERENCES, encoding="utf-8")


def fill_citations(text: str, cite: Callable[[str], str]) -> str:
    """Replace the marks of citations in the text of `describe_run`."""
    return CITATION.sub(lambda match: cite(match[1]), text)


def describe_run(run: ExportedRun) -> list[str]:
    """Return paragraphs on the method and on the results. `<<key>>` marks a citation."""
    return [" ".join(_describe_method(run)), " ".join(_describe_results(run))]


def _describe_method(run: ExportedRun) -> Iterator[str]:
    spec, design = run.spec, run.spec["design"]
    methods = [name for name, method in run.methods.items() if not method.control]
    controls = [name for name, method in run.methods.items() if method.control]
    yield (
        f"We used peekbench {run.session['peekbench']} <<peekbench>> to measure whether "
        f"{pluralize(len(methods), 'method')} ({_join(methods)}) {'scores' if len(methods) == 1 else 'score'} higher "
        "by adapting to the unlabeled texts of the test set <<dubey2024>>."
    )
    yield (
        f"On each of {pluralize(len(run.tasks), 'task')} ({_join(list(run.tasks))}), we drew "
        f"{_describe_subsamples(design['num_subsamples'])} (seed {spec['seed']}) of "
        f"{_join_numbers(design['num_train'])} labeled train texts"
        f"{' with classes at their natural shares' if design['train'] != 'balanced' else ''}, "
        f"{_join_numbers(design['num_test'])} test texts and as many extra texts from the same distribution, without "
        "overlap."
    )
    arms = [ARM_WORDS[arm] for arm in spec["arms"] if arm in ARM_WORDS]
    doses = [arm for arm in spec["arms"] if arm not in ARM_WORDS]
    yield (
        f"Each method was fitted on each subsample {_join(arms)}"
        + (f", and with mixtures of extra and test texts ({_join(list(map(_describe_dose, doses)))})" if doses else "")
        + ", with the same train and test texts."
    )
    yield (
        "The score of extra is uncontaminated; the bias is the score of test minus that of extra"
        + (", and the boost is the score of extra minus that of base." if "base" in spec["arms"] else ".")
    )
    if controls:
        yield f"The run includes {pluralize(len(controls), 'control')} whose bias is known ({_join(controls)})."
    if design["stop"] is not None:
        yield (
            f"The results were analyzed at {pluralize(design['stop']['looks'], 'planned look')}, for which verdicts "
            "account."
        )
    analyses = [analysis["use"] for analysis in spec["analyses"]]
    summaries = [f"{use} ({registry.find(use, AnalyzerEntry).summary})" for use in analyses]
    yield f"The results were analyzed with {_join(summaries)}."


def _describe_results(run: ExportedRun) -> Iterator[str]:
    report = run.report
    failed = f"; {pluralize(len(report.failures), 'trial')} failed" if report.failures else ""
    yield f"{run.num_analyzed:,} of {pluralize(run.num_planned, 'planned trial')} were analyzed{failed}."
    yield from _describe_biases(run)
    packages = run.session["packages"]
    versions = [f"{name} {packages[name]}" for name in MAIN_PACKAGES if name in packages]
    yield (
        f"The run used Python {run.session['python']}, {_join(versions)}; its identifier is {run.identifier}."
        if versions
        else f"The run used Python {run.session['python']}; its identifier is {run.identifier}."
    )


def _describe_biases(run: ExportedRun) -> Iterator[str]:
    """Yield a sentence on the uncontaminated score and the bias of each configuration."""
    averages = [estimate for estimate in run.estimates if estimate.is_average]
    scores = {estimate.configuration: estimate for estimate in averages if estimate.quantity == "extra"}
    biases = [estimate for estimate in averages if estimate.quantity == "bias"]
    family = max((verdict.family for verdict in run.report.verdicts if verdict.effect == "bias"), default=1)
    if family > 1:
        yield f"Verdicts and the intervals of the biases are adjusted for {family} configurations."
    for bias in biases:
        score = scores[bias.configuration]
        is_accuracy = score.metric == ACCURACY
        score_text = format_cell(score.estimate, score_unit(is_accuracy))
        interval = ""
        if bias.low is not None and bias.high is not None:
            low, high = (format_signed(limit, difference_unit(is_accuracy)) for limit in (bias.low, bias.high))
            interval = f"{bias.level:.0%} interval {low} to {high}; "
        sizes = {"num_train": bias.num_train, "num_test": bias.num_test}
        label = label_configuration({"method": bias.method, "model": bias.model, **vary(sizes, biases)})
        yield (
            f"{label}: {score.metric} of extra {score_text}, bias "
            f"{format_signed(bias.estimate, difference_unit(is_accuracy))}{' points' if is_accuracy else ''} "
            f"({interval}{f'{bias.control} control, ' if bias.control else ''}{bias.decision})."
        )


def vary(cells: Mapping[str, Any], estimates: Sequence[ScoreEstimate]) -> dict[str, Any]:
    """Return the cells in which the estimates differ."""
    return {name: cell for name, cell in cells.items() if len({getattr(each, name) for each in estimates}) > 1}


def _describe_subsamples(number: int | dict[str, int]) -> str:
    if isinstance(number, int):
        return pluralize(number, "subsample")
    return _join([f"{pluralize(count, 'subsample')} for {size} test texts" for size, count in number.items()])


def _describe_dose(arm: object) -> str:
    return f"mix {arm['mix']}" if isinstance(arm, dict) and "mix" in arm else str(arm)


def _join_numbers(numbers: Sequence[int]) -> str:
    return _join([f"{number:,}" for number in numbers], "or")


def _join(names: Sequence[str], word: str = "and") -> str:
    """Return names as a list in words."""
    if len(names) > MAX_NAMED:
        names = [*names[: MAX_NAMED - 1], f"{len(names) - MAX_NAMED + 1} others"]
    return f" {word} ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])
