"""States what the numbers of the atlas show, in sentences that are made from the numbers.

A sentence that depends on a condition, such as "although unlabeled texts lower its accuracy", is left out if the
condition does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from atlas_figures import without_controls
from atlas_records import BITS, POINTS, Effect, Line, Method, Section, Series
from pages import points

from peekbench.formatting import pluralize, with_sign

TARGET = 0.005
"""The bias that each method's subsamples should suffice to detect."""
DECISIONS = {
    "biased up": ("is biased up", "are biased up"),
    "biased down": ("is biased down", "are biased down"),
    "equivalent": ("is equivalent (its bias is below {})", "are equivalent (their biases are below {})"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
}
"""Predicates for one method and for several; {} is the half-width of the region of equivalence."""
REGIONS = {POINTS: "half a point", BITS: "0.01 bits per byte"}


def effect_text(effect: Effect, unit: str = POINTS) -> str:
    """Return an effect with its interval, in points or bits per byte."""
    show = points if unit == POINTS else partial(with_sign, digits=4)
    if effect.low is None or effect.high is None:
        return show(effect.mean)
    return f"{show(effect.mean)} [{show(effect.low)}, {show(effect.high)}]"


def names(methods: Sequence[Method | Line]) -> str:
    """Return the names of methods in code style, joined by commas."""
    return ", ".join(f"`{method.name if isinstance(method, Method) else method.method}`" for method in methods)


def section_findings(section: Section) -> Iterator[str]:
    """Yield the findings on the methods of a section."""
    methods = without_controls(section)
    yield _verdicts(methods, section.unit)
    yield from _largest(methods, section.unit)
    yield _boosts(methods)
    yield _by_task(methods, section.unit)
    yield from _opposite(methods, section.unit)
    if section.unit == POINTS:
        yield from _detectable(methods)
    yield from _controls(section)


def _verdicts(methods: Sequence[Method], unit: str) -> str:
    parts = []
    for decision, (one, several) in DECISIONS.items():
        those = [method for method in methods if method.bias.decision == decision]
        if decision == "biased down" and not those:
            parts.append("none is biased down")
        elif those:
            predicate = (one if len(those) == 1 else several).format(REGIONS[unit])
            parts.append(f"{len(those)} {predicate}: {names(those)}")
    return f"Of {pluralize(len(methods), 'method')}, " + "; ".join(parts) + "."


def _largest(methods: Sequence[Method], unit: str) -> Iterator[str]:
    biased = [method for method in methods if method.bias.decision.startswith("biased")]
    negligible = [
        method
        for method in methods
        if method.bias.decision == "equivalent" and (method.bias.is_up or method.bias.is_down)
    ]
    if negligible:
        yield f"The bias is negligible but differs from zero: {names(negligible)}."
    if not biased:
        return
    largest = max(biased, key=lambda method: abs(method.bias.mean))
    yield f"The largest average bias is that of `{largest.name}`: {effect_text(largest.bias, unit)} {unit}."
    harmed = [method for method in biased if method.bias.is_up and method.boost.is_down]
    if harmed:
        subject = "method that is biased up has" if len(harmed) == 1 else "methods that are biased up have"
        yield (
            f"{len(harmed)} {subject} a negative boost ({names(harmed)}): unlabeled texts make "
            f"{'it' if len(harmed) == 1 else 'them'} worse, and the test texts less so than other texts. A method that "
            "gains nothing from unlabeled text can therefore still score too high on the texts that it adapted to."
        )


def _boosts(methods: Sequence[Method]) -> str:
    up = [method for method in methods if method.boost.is_up]
    down = [method for method in methods if method.boost.is_down]
    total = pluralize(len(methods), "method")
    helped = f"improve {len(up)} of {total} ({names(up)})" if up else "significantly improve no method"
    harmed = f"make {len(down)} worse ({names(down)})" if down else "make none significantly worse"
    return f"Unlabeled texts that are not the test texts {helped} and {harmed}."


def _by_task(methods: Sequence[Method], unit: str) -> str:
    cells = [(method, task, cell.bias) for method in methods for task, cell in method.tasks.items()]
    up = [(method, task, bias) for method, task, bias in cells if bias.decision == "biased up"]
    down = [(method, task, bias) for method, task, bias in cells if bias.decision == "biased down"]
    if not up and not down:
        return f"On no single task is a bias found ({len(cells)} pairs of method and task, adjusted)."
    found = [
        f"{len(those)} {'is' if len(those) == 1 else 'are'} biased {way}"
        for way, those in (("up", up), ("down", down))
        if those
    ]
    largest = max(up + down, key=lambda cell: abs(cell[2].mean))
    return (
        f"Of {len(cells)} pairs of method and task, {' and '.join(found)}. The largest of these biases is "
        f"{effect_text(largest[2], unit)} {unit}, of `{largest[0].name}` on {task_name(largest[1])}."
    )


def _opposite(methods: Sequence[Method], unit: str) -> Iterator[str]:
    """Yield which methods are biased up on one task and down on another, so that their averages hide biases."""
    found = []
    for method in methods:
        biases = [(task, cell.bias) for task, cell in method.tasks.items()]
        if {"biased up", "biased down"} <= {bias.decision for _, bias in biases}:
            (lowest, low), (highest, high) = (extreme(biases, key=lambda pair: pair[1].mean) for extreme in (min, max))
            show = partial(effect_text, unit=unit)
            found.append(
                f"`{method.name}` ({show(low)} {unit} on {task_name(lowest)}, {show(high)} on {task_name(highest)})"
            )
    if found:
        subject = "One method is" if len(found) == 1 else f"{len(found)} methods are"
        yield f"{subject} biased up on one task and down on another, which an average hides: {', '.join(found)}."


def task_name(task: str) -> str:
    """Return the name of a task without its source."""
    return task.partition(".")[2] or task


def _detectable(methods: Sequence[Method]) -> Iterator[str]:
    measured = [(method.detectable, method) for method in methods if method.detectable is not None]
    if not measured or any(method.bias.low is None for _, method in measured):
        return
    above = [method for value, method in measured if value > TARGET]
    largest, method = max(measured, key=lambda pair: pair[0])
    yield (
        f"An average bias of {largest * 100:.2f} points would be detected in every method with a power of 80% (level "
        f"5%, not adjusted; the noisiest method is `{method.name}`)."
    )
    if above:
        yield (
            f"For {names(above)}, the detectable bias is larger than {TARGET * 100:g} points: a smaller bias of "
            f"{'this method' if len(above) == 1 else 'these methods'} may exist."
        )


def _controls(section: Section) -> Iterator[str]:
    controls = [method for method in section.methods if method.control]
    failed = [method for method in controls if method.bias.decision != "passed"]
    if failed:
        yield f"**Controls that did not pass: {names(failed)}.** Find the cause before you trust the other numbers."
        return
    leaks = [method.bias.mean for method in controls if method.control == "positive"]
    if not controls or any(method.bias.mean != 0 for method in controls if method.control == "negative"):
        return
    passed = "All controls passed: the bias of the negative control is exactly 0"
    if leaks:
        ends = " to ".join(dict.fromkeys(f"{leak * 100:.1f}" for leak in (min(leaks), max(leaks))))
        passed += f", that of the leak {ends} points"
    yield f"{passed}."


def dose_findings(series: Series) -> Iterator[str]:
    """Yield the findings on the dose response."""
    biased = [line for line in series.lines if line.effects[-1].is_up or line.effects[-1].is_down]
    for line in biased:
        full = line.effects[-1].mean
        shares = ", ".join(f"{effect.mean / full:.0%}" for effect in line.effects[1:-1])
        doses = ", ".join(f"{dose:.0%}" for dose in line.x[1:-1])
        yield f"`{line.method}`: doses of {doses} have {shares} of the bias of {points(full)} points."
    flat = [line for line in series.lines if line not in biased and line.control != "negative"]
    if flat:
        yield f"No bias, and therefore no dose response, is found for {names(flat)}."


def size_findings(series: Series) -> Iterator[str]:
    """Yield a finding for each method: how its bias changes from the smallest to the largest size."""
    noun = "test texts" if series.name == "num_test" else "train texts"
    none_found = []
    for line in series.lines:
        if line.control == "negative":
            continue
        if not any(effect.is_up or effect.is_down for effect in line.effects):
            none_found.append(line)
            continue
        first, last = line.effects[0], line.effects[-1]
        yield (
            f"`{line.method}`: {effect_text(first)} points with {line.x[0]:g} {noun}, {effect_text(last)} with "
            f"{line.x[-1]:g}: {_compare(first, last)}."
        )
    if none_found:
        yield f"At no size is a bias found for {names(none_found)}."


def _compare(first: Effect, last: Effect) -> str:
    """Compare two effects by their intervals, which is stricter than a test of their difference."""
    assert first.low is not None and first.high is not None and last.low is not None and last.high is not None
    if first.low > last.high:
        return "it falls"
    if first.high < last.low:
        return "it rises"
    return "the intervals overlap"


def series_findings(series: Series) -> Iterator[str]:
    """Yield the findings on the lines of a spec."""
    return dose_findings(series) if series.name == "dose" else size_findings(series)
