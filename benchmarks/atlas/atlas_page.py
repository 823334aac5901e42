"""Writes docs/atlas.md from the numbers of the atlas, with figures and findings: a function of docs/atlas.json alone.

A sentence that depends on a condition, such as "although unlabeled texts lower its accuracy", is left out if the
condition does not hold.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from atlas_numbers import BITS, OMITTED, POINTS, Atlas, Effect, Line, Method, Section, Series
from pages import draw_picture, markdown, points  # whose folder `atlas_numbers` adds to the path

from peekbench.formatting import pluralize, with_sign
from peekbench.records import Axis, Curve, Curves, Forest, Interval

REGION = 0.005
"""Half an accuracy point, the region of practical equivalence of `summary`."""
UNITS = {POINTS: "accuracy points"}
ADJUSTED = "95% intervals for new subsamples of these tasks, adjusted for {}."
X_AXES = {
    "dose": Axis("share of test texts", "fraction"),
    "num_test": Axis("test texts", "count", is_log=True),
    "num_train": Axis("train texts", "count", is_log=True),
}
TITLES = {
    "dose": "Accuracy minus the accuracy of extra, by the share of test texts among the unlabeled texts",
    "num_test": "Bias by number of test texts",
    "num_train": "Bias by number of train texts",
}


def draw_biases(section: Section) -> Forest:
    """Draw the average bias of each method."""
    methods = without_controls(section)
    unit = "difference" if section.unit == POINTS else "change"
    return Forest(
        "Bias: score of test minus score of extra",
        (("", _intervals((method.name, method.bias) for method in methods)),),
        ADJUSTED.format(pluralize(len(methods), "method")),
        unit,  # type: ignore[arg-type]
        UNITS.get(section.unit, section.unit),
        REGION if section.unit == POINTS else 0.0,
    )


def draw_effects(section: Section) -> Forest:
    """Draw boost and bias side by side, methods in order of their boost."""
    methods = sorted(without_controls(section), key=lambda method: -method.boost.mean)
    groups = (
        ("boost: extra minus base", _intervals((method.name, method.boost) for method in methods)),
        ("bias: test minus extra", _intervals((method.name, method.bias) for method in methods)),
    )
    unit = "difference" if section.unit == POINTS else "change"
    note = "In order of the boost. " + ADJUSTED.format(pluralize(len(methods), "method"))
    return Forest("Boost and bias", groups, note, unit, UNITS.get(section.unit, section.unit))  # type: ignore[arg-type]


def draw_series(series: Series) -> Curves:
    """Draw one panel for each method; the negative control, whose bias is exactly 0, has none."""
    panels = tuple((line.method, (_curve(line),)) for line in series.lines if line.control != "negative")
    ordinate = "difference from extra" if series.name == "dose" else "bias"
    y = Axis(f"{ordinate}, accuracy points", "difference", region=REGION)
    num_estimates = sum(len(line.effects) - (series.name == "dose") for line in series.lines if not line.control)
    note = f"95% intervals for new subsamples of these tasks, adjusted for {num_estimates} estimates."
    return Curves(TITLES[series.name], X_AXES[series.name], y, panels, note)


def without_controls(section: Section) -> Sequence[Method]:
    """Return the methods of a section that are not controls."""
    return [method for method in section.methods if not method.control]


def _intervals(effects: Iterable[tuple[str, Effect]]) -> tuple[Interval, ...]:
    return tuple(Interval(label, effect.mean, *_limits(effect)) for label, effect in effects)


def _limits(effect: Effect) -> tuple[float, float]:
    """Return the interval, of zero width if there is none."""
    return (effect.mean if effect.low is None else effect.low, effect.mean if effect.high is None else effect.high)


def _curve(line: Line) -> Curve:
    limits = [_limits(effect) for effect in line.effects]
    means = tuple(effect.mean for effect in line.effects)
    return Curve("mean of these tasks", tuple(line.x), means, *(tuple(ends) for ends in zip(*limits, strict=True)))


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


WRAPPING: dict[str, Any] = {"width": 120, "break_long_words": False, "break_on_hyphens": False}
MAX_TASKS = 6  # columns with intervals; with more tasks, the table has the estimates only
INTRODUCTION = """# Atlas of biases

Which methods score higher on texts that they have adapted to? This page measures the methods of peekbench on the same
tasks: their **boost**, the gain from unlabeled texts that are not the test texts, and their **bias**, the further gain
if they are the test texts ([glossary](usage.md#glossary)). [Methods](methods.md) describes what each method learns from
them.

`tox run -e atlas` runs the specs in [specs/atlas](../specs/atlas), or resumes them, and writes this page from their
stores. [atlas.json](atlas.json) has all numbers with more digits. All text on this page that follows from a number is
generated from it.

Effects are in points of accuracy, as means over tasks of equal weight. Intervals have the level 95% for new subsamples
of these tasks. They are those of the verdicts of `summary`, [adjusted](statistics.md#families) for all estimates of the
same table except controls. **Bold** effects are significant after adjustment and not negligible: the verdict is *biased
up* or *biased down* (for a boost: it differs from zero, and may exceed half a point). *Detectable* is the smallest bias
that the subsamples detect with 80% power, without adjustment. *Other tasks* says whether other tasks like these would
also show a bias, by [tests over tasks](statistics.md#summary). The controls `null` and `leak` belong to the run of the
spec in parentheses."""
SECTIONS = {
    "docstrings": ("Methods on the docstrings tasks", "docstrings"),
    "language modeling": ("Language modeling", "language_modeling"),
    "hub": ("Methods on real tasks of the Hub", "hub"),
}
"""Heading and prefix of the figures of each section."""
SERIES_TEXTS = {
    "dose": (
        "Dose response",
        "The arms `mix` adapt to unlabeled texts of which a share are test texts. If adapting to the test texts causes "
        "the bias, the accuracy grows with this share. The table shows the difference from `extra`.",
    ),
    "num_test": (
        "Number of test texts",
        "There are as many unlabeled texts as test texts, so both numbers change together. The table shows the bias.",
    ),
    "num_train": ("Number of train texts", "The table shows the bias by number of labeled train texts."),
}


def write_page(atlas: Atlas, page: Path) -> None:
    """Write the page and its figures.

    Parameters
    ----------
    atlas
        The numbers.
    page
        Path of the page; its figures are written to a folder next to it, with its name without suffix.
    """
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for picture in folder.glob("*.svg"):  # of a spec that may have no finished run any more
        picture.unlink()
    page.write_text("\n\n".join(_paragraphs(atlas, folder)) + "\n", encoding="utf-8")


def _paragraphs(atlas: Atlas, folder: Path) -> Iterator[str]:
    yield INTRODUCTION
    yield from _missing(atlas)
    yield from _findings(atlas)
    for name in SECTIONS:
        if name != "hub" and (section := atlas.section(name)):
            yield from _section(section, folder)
    for name in SERIES_TEXTS:
        if series := atlas.one_series(name):
            yield from _series(series, folder)
    if section := atlas.section("hub"):
        yield from _section(section, folder)
    yield from _runs(atlas)


def _findings(atlas: Atlas) -> Iterator[str]:
    """State what the numbers show, by section of the page."""
    found = {SECTIONS[section.name][0]: list(section_findings(section)) for section in atlas.sections}
    found |= {SERIES_TEXTS[series.name][0]: list(series_findings(series)) for series in atlas.series}
    if found:
        yield "## What the atlas shows"
    for heading, sentences in found.items():
        yield f"**[{heading}](#{heading.lower().replace(' ', '-')})**"
        yield "\n".join(textwrap.fill(f"- {sentence}", subsequent_indent="  ", **WRAPPING) for sentence in sentences)


def _missing(atlas: Atlas) -> Iterator[str]:
    if atlas.missing:
        lines = (f"- `{name}.yaml`: `peekbench run specs/atlas/{name}.yaml`" for name in atlas.missing)
        yield "These specs have no finished run and are left out of this page:\n\n" + "\n".join(lines)


def _section(section: Section, folder: Path) -> Iterator[str]:
    heading, prefix = SECTIONS[section.name]
    tasks = [task_name(task) for task in section.methods[0].tasks]
    yield f"## {heading}"
    text = (
        f"{len(tasks)} tasks ({', '.join(tasks)}), {section.num_train} train texts, {section.num_test} test texts and "
        "as many extra texts."
    )
    if section.unit == BITS:
        text += (
            " The score is the log-likelihood of the test texts in bits per byte; higher is better. Here the text is "
            "what a method predicts, so a method that remembers its unlabeled texts, such as `lm.ngram`, is "
            "biased by construction: it is a positive control for this kind of task."
        )
    yield textwrap.fill(text, **WRAPPING)
    yield _methods_table(section)
    if len(without_controls(section)) > 1:  # a figure of one estimate shows no more than the table
        yield draw_picture(draw_biases(section), folder / f"{prefix}_bias.svg")
        yield draw_picture(draw_effects(section), folder / f"{prefix}_effects.svg")
    num_cells = len(without_controls(section)) * len(tasks)
    adjusted = f"adjusted for {num_cells} pairs of method and task"
    shown = "" if len(tasks) <= MAX_TASKS else "; [atlas.json](atlas.json) has the intervals"
    yield f"### {heading}: bias by task"
    yield f"95% intervals, {adjusted}{shown}."
    yield _task_table(section, "bias")
    yield f"### {heading}: boost by task"
    yield _task_table(section, "boost")


def _methods_table(section: Section) -> str:
    headings = ["method", "spec", "`base`", "boost", "bias", "verdict", "other tasks", "detectable", "subsamples"]
    return markdown(headings, [_method_row(method, section.unit) for method in section.methods])


def _method_row(method: Method, unit: str) -> list[str]:
    base = f"{method.base:.1%}" if unit == POINTS else f"{method.base:.3f}"
    effects = (_bold(method.boost, unit), _bold(method.bias, unit))
    return [
        method.name, _spec_link(method.spec), base, *effects, method.bias.decision,
        "" if method.control else method.bias.other_tasks, _detectable_text(method, unit), str(method.subsamples),
    ]  # fmt: skip


def _detectable_text(method: Method, unit: str) -> str:
    if method.detectable is None:
        return ""
    return f"{method.detectable * 100:.2f}" if unit == POINTS else f"{method.detectable:.4f}"


def _bold(effect: Effect, unit: str = POINTS) -> str:
    text = effect_text(effect, unit)
    return f"**{text}**" if effect.decision.startswith("biased") else text


def _task_table(section: Section, name: str) -> str:
    tasks = list(section.methods[0].tasks)
    body = []
    for method in section.methods:
        effects: list[Effect] = [getattr(method.tasks[task], name) for task in tasks]
        body.append([method.name, *(_cell(effect, section.unit, len(tasks)) for effect in effects)])
    return markdown(["method", *map(task_name, tasks)], body)


def _cell(effect: Effect, unit: str, num_tasks: int) -> str:
    shown = effect if num_tasks <= MAX_TASKS else effect.model_copy(update={"low": None, "high": None})
    return _bold(shown, unit)


def _series(series: Series, folder: Path) -> Iterator[str]:
    heading, text = SERIES_TEXTS[series.name]
    sizes = {"train texts": series.num_train, "test texts": series.num_test}
    fixed = ", ".join(f"{number} {name}" for name, number in sizes.items() if number is not None)
    yield f"## {heading}"
    text += f" The five docstrings tasks, {fixed}, {series.subsamples} subsamples; {_spec_link(series.name)}."
    yield textwrap.fill(text, **WRAPPING)
    labels = [f"{x:.0%}" if series.name == "dose" else f"{x:g}" for x in series.lines[0].x]
    start = 1 if series.name == "dose" else 0  # the dose 0 is `extra` itself
    body = [[line.method, *map(_bold, line.effects[start:])] for line in series.lines]
    yield markdown(["method", *labels[start:]], body)
    yield draw_picture(draw_series(series), folder / f"{series.name}.svg")


def _spec_link(spec: str) -> str:
    return f"[{spec}.yaml](../specs/atlas/{spec}.yaml)"


def _runs(atlas: Atlas) -> Iterator[str]:
    if atlas.runs:
        body = [[_spec_link(run.spec), run.purpose, f"{run.trials:,}", str(run.subsamples)] for run in atlas.runs]
        yield "## Specs"
        yield "Each number of this page comes from the run of one spec."
        yield markdown(["spec", "purpose", "trials", "subsamples per task"], body)
    yield "Methods of peekbench that are not in the atlas:"
    yield "\n".join(f"- `{method}`: {reason}" for method, reason in OMITTED.items())
