"""Writes docs/atlas.md from the numbers of the atlas: a function of docs/atlas.json alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atlas_figures import draw_biases, draw_effects, draw_series, without_controls
from atlas_findings import effect_text, section_findings, series_findings, task_name
from atlas_numbers import OMITTED
from atlas_records import BITS, POINTS, Atlas, Effect, Method, Section, Series
from pages import draw_picture, markdown

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
        "" if method.control else method.bias.other_tasks, _detectable(method, unit), str(method.subsamples),
    ]  # fmt: skip


def _detectable(method: Method, unit: str) -> str:
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
