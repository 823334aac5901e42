"""A paragraph for the methods section of a paper: design, trials, analyses, verdicts and versions of a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from peekbench.export.content import ExportedRun
from peekbench.export.references import REFERENCES_FILE, make_references
from peekbench.formatting import difference_unit, format_cell, format_signed, pluralize, score_unit
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry
from peekbench.records.estimates import ACCURACY, ScoreEstimate
from peekbench.report.build.provenance_text import MAIN_PACKAGES
from peekbench.results.paired_effects import label_configuration
from peekbench.spec.design import Design

CITATION = re.compile(r"<<(\w+)>>")
MAX_NAMED = 12  # tasks or methods that are named, or configurations whose results are stated
ARM_WORDS = {
    "base": "without unlabeled text (base)",
    "extra": "with the extra texts as unlabeled text (extra)",
    "test": "with the test texts, but not their labels, as unlabeled text (test)",
}


def write_text(run: ExportedRun, folder: Path) -> None:
    """Write the paragraph as plain text, with citations as in Markdown for Pandoc: [@dubey2024]."""
    text = fill_citations("\n\n".join(describe_run(run)), lambda key: f"[@{key}]")
    (folder / "methods.txt").write_text(text + "\n", encoding="utf-8")
    write_references(run, folder)


def write_references(run: ExportedRun, folder: Path) -> None:
    """Write the references that the paragraphs cite."""
    year = datetime.fromisoformat(run.session["started"]).year
    (folder / REFERENCES_FILE).write_text(make_references(run.session["peekbench"], year), encoding="utf-8")


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
        f"We used peekbench {run.session['peekbench']} <<peekbench>> to measure whether adapting to the unlabeled "
        f"texts of the test set changes the score of {_join(methods or controls)} <<dubey2024>>."
    )
    has_labels = any(task.get("kind") != "language_modeling" for task in spec["tasks"])
    shares = " with classes at their natural shares" if has_labels and design["train"] != "balanced" else ""
    tasks = f"{'each of ' if len(run.tasks) > 1 else ''}{pluralize(len(run.tasks), 'task')} ({_join(run.tasks)})"
    yield (
        f"From {tasks}, we drew {_describe_subsamples(spec)} of {_join_numbers(design['num_train'])} "
        f"{'labeled ' if has_labels else ''}train texts{shares}, {_join_numbers(design['num_test'])} test texts and as "
        f"many extra texts from the same distribution, without overlap (seed {spec['seed']})."
    )
    arms = [ARM_WORDS[arm] for arm in spec["arms"] if isinstance(arm, str)]
    doses = [f"{arm['mix']:.4g}" for arm in spec["arms"] if not isinstance(arm, str)]
    if doses:
        arms.append(f"with mixtures in which the share of test texts is {_join(doses, 'or')}")
    yield f"On each subsample, each method was fitted to the same train texts {_join(arms)}."
    yield (
        "The score of extra is uncontaminated; the bias is the score of test minus that of extra"
        + (", and the boost is the score of extra minus that of base." if "base" in spec["arms"] else ".")
    )
    if methods and controls:
        yield f"The run includes the control{'s' if controls[1:] else ''} {_join(controls)}, whose bias is known."
    if design["stop"] is not None:
        yield _describe_looks(run)
    summaries = [
        f"{analysis['use']} ({registry.find(analysis['use'], AnalyzerEntry).summary})" for analysis in spec["analyses"]
    ]
    yield f"The results were analyzed with {_join(summaries)}."


def _describe_looks(run: ExportedRun) -> str:
    """Return a sentence on the planned looks, and on the one at which the run stopped."""
    design = Design.model_validate(run.spec["design"])
    planned = f"We planned {pluralize(design.num_looks, 'look')} at the results, for which the intervals account"
    if run.stopped_at is None:
        return f"{planned}."
    return f"{planned}; the run ended at look {design.look_number(run.stopped_at)}, when all verdicts were settled."


def _describe_results(run: ExportedRun) -> Iterator[str]:
    report = run.report
    failed = f"; {pluralize(len(report.failures), 'trial')} failed" if report.failures else ""
    number = f"{run.num_analyzed:,} of {pluralize(run.num_planned, 'planned trial')}"
    yield f"{f'All {run.num_planned:,} planned trials' if run.is_complete else number} were analyzed{failed}."
    yield from _describe_biases(run)
    packages = run.session.get("versions", run.session["packages"])  # without what no method requires
    versions = [f"{name} {packages[name]}" for name in MAIN_PACKAGES if name in packages]
    software = _join([f"Python {run.session['python']}", *versions])
    yield f"The run used {software}; its identifier is {run.identifier}."


def _describe_biases(run: ExportedRun) -> Iterator[str]:
    """Yield a sentence on the uncontaminated score and the bias of each configuration."""
    averages = [estimate for estimate in run.estimates if estimate.is_average]
    scores = {estimate.configuration: estimate for estimate in averages if estimate.quantity == "extra"}
    biases = [estimate for estimate in averages if estimate.quantity == "bias"]
    regions = {each.region for each in run.report.verdicts if each.effect == "bias" and each.region is not None}
    if len(regions) == 1:
        (region,) = regions
        is_accuracy = scores[biases[0].configuration].metric == ACCURACY
        yield (
            "A method is called equivalent if the interval of its bias lies within "
            f"{f'{100 * region:g} points' if is_accuracy else f'{region:.4g}'} of 0; otherwise biased if the interval "
            "excludes 0, and inconclusive if it does not."
        )
    family = max((verdict.family for verdict in run.report.verdicts if verdict.effect == "bias"), default=1)
    if family > 1:
        yield f"These intervals are adjusted for {family} configurations."
    if len(biases) > MAX_NAMED:
        counts = Counter(bias.decision for bias in biases)
        decisions = _join(f"{count} {decision}" for decision, count in counts.most_common())
        yield f"Of {len(biases)} configurations, {decisions}."
        return
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
            f"For {label}, the mean {score.metric} of extra was {score_text}, and the bias was "
            f"{format_signed(bias.estimate, difference_unit(is_accuracy))}{' points' if is_accuracy else ''} "
            f"({interval}{f'{bias.control} control, ' if bias.control else ''}{bias.decision})."
        )


def vary(cells: Mapping[str, Any], estimates: Sequence[ScoreEstimate]) -> dict[str, Any]:
    """Return the cells in which the estimates differ."""
    return {name: cell for name, cell in cells.items() if len({getattr(each, name) for each in estimates}) > 1}


def _describe_subsamples(spec: Mapping[str, Any]) -> str:
    number = spec["design"]["num_subsamples"]
    at_most = "at most " if spec["design"]["stop"] is not None else ""
    own = {task["name"]: task["num_subsamples"] for task in spec["tasks"] if task.get("num_subsamples")}
    if own and isinstance(number, int):
        by_task = [own.get(task["name"], number) for task in spec["tasks"]]
        if min(by_task) < max(by_task):
            return f"{at_most}{min(by_task):,} to {pluralize(max(by_task), 'subsample')} (by task)"
        number = by_task[0]
    if isinstance(number, int):
        return at_most + pluralize(number, "subsample")
    return at_most + _join([f"{pluralize(count, 'subsample')} for {size} test texts" for size, count in number.items()])


def _join_numbers(numbers: Sequence[int]) -> str:
    return _join([f"{number:,}" for number in numbers], "or")


def _join(names: Iterable[str], word: str = "and") -> str:
    """Return names as a list in words."""
    names = list(names)
    if len(names) > MAX_NAMED:
        names = [*names[: MAX_NAMED - 1], f"{len(names) - MAX_NAMED + 1} others"]
    return f" {word} ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])
