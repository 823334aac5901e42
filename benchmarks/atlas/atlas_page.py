"""Writes docs/atlas.md from atlas_template.md and the numbers of the atlas: a function of docs/atlas.json alone."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from atlas_numbers import PUBLISHED, RULES, STRESS_TESTS
from atlas_records import Atlas, Effect, Method, Official, Run, Section
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from official_page import OfficialFacts
from pages import draw_picture, markdown, points  # whose folder `atlas_numbers` adds to the path
from scipy.stats import t as student

from peekbench.formatting import with_sign
from peekbench.records import Axis, Curve, Curves

BITS = "language modeling"
"""Section with effects in bits per byte; all others are in accuracy points."""
REGION = 0.005
"""Half an accuracy point, the region of practical equivalence of `summary`."""
LANGUAGE_MODELS = {
    "trained": "classification",
    "gemma": "classification (Gemma)",
    "in context": "prompts (Gemma)",
    "sums": "sums (Gemma)",
    BITS: "bits per byte",
}
"""Sections and published tables that share the table of language models, and what their methods are scored on."""
ADJUSTED = "95% intervals for new subsamples of these tasks, adjusted for all estimates."
IN_JSON = "The numbers are in atlas.json."  # alternative text of figures


def write_page(atlas: Atlas, official: Official, page: Path) -> None:
    """Write the page, its figures into a folder of its name, and the page on rules beside it."""
    figures = page.with_suffix("")
    figures.mkdir(parents=True, exist_ok=True)
    for path in figures.iterdir():
        path.unlink()
    facts = OfficialFacts(official)
    main = atlas.sections["hub"]
    judged = main.of_state("judged")
    chosen = [method for method in judged if method.name not in STRESS_TESTS]
    natural, replication, crossed, swapped = (
        compare(chosen, atlas.sections[name]) for name in ("natural", "replication", "cross-fitting", "membership")
    )
    values = {
        "atlas": atlas, "sections": atlas.sections, "main": main, "all": judged, "chosen": chosen, "pairs": pairs,
        "official": facts, "biased_tasks": biased_tasks,
        "equivalent": [bias for bias in pairs(chosen) if bias.decision == "equivalent"],
        "percent": percent,
        "methods": methods_table, "controls": describe_controls,
        "language_models": find_language_models(atlas.sections),
        "language_models_table": language_models_table,
        "natural": natural, "replication": replication, "crossed": crossed, "swapped": swapped,
        "most_natural": max(
            abs(pair.second.mean) for pair in natural.biased if pair.second.decision.startswith("biased")
        ),
        "refined": describe_refined(crossed, atlas.sections["more folds"]),
        "effect": effect_text, "points": points,
        "draw_official": lambda: draw_picture(
            draw_official(facts.biases()), figures / "official.svg", "The numbers are in official.json."
        ),
        "draw_pairs": lambda *compared: draw_picture(draw_pairs(*compared), figures / "pairs.svg", IN_JSON),
    }  # fmt: skip
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=False, keep_trailing_newline=True,
    )  # fmt: skip
    for name, file in {"atlas_template.md": page, "rules_template.md": page.with_name("rules.md")}.items():
        file.write_text(wrap_paragraphs(environment.get_template(name).render(values)), encoding="utf-8")


def wrap_paragraphs(text: str) -> str:
    """Wrap paragraphs and list items at 120 columns; tables, figures and headings keep their lines."""
    blocks = re.split(r"\n{2,}", text.strip())
    return "\n\n".join(map(_wrap_block, blocks)) + "\n"


def _wrap_block(block: str) -> str:
    if block.startswith(("|", "!", "#", ">", "    ")):
        return block
    lines = []
    for item in re.split(r"\n(?=- |\d+\. )", block):
        bullet = re.match(r"- |\d+\. |", item)
        indent = " " * len(bullet[0] if bullet else "")
        words = " ".join(item.split())
        lines += textwrap.wrap(words, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def effect_text(effect: Effect, *, bits: bool = False, is_bold: bool = False) -> str:
    """Return an effect with its interval, in points or bits per byte; in bold if it is biased."""
    show: Callable[[float], str] = (lambda value: with_sign(value, 4)) if bits else points
    text = show(effect.mean)
    if effect.low is not None and effect.high is not None:
        text += f" [{show(effect.low)}, {show(effect.high)}]"
    return f"**{text}**" if is_bold and effect.decision.startswith("biased") else text


def percent(share: float | None) -> str:
    """Return a share in percent."""
    return "" if share is None else f"{share:.1%}"


def pairs(methods: Iterable[Method]) -> list[Effect]:
    """Return the biases of all methods on single tasks."""
    return [bias for method in methods for bias in method.biases.values()]


def biased_tasks(methods: Iterable[Method], sign: int) -> list[Effect]:
    """Return the biases on single tasks whose verdict is 'biased up' (1) or 'biased down' (-1), the largest first."""
    decision = "biased up" if sign > 0 else "biased down"
    found = [bias for bias in pairs(methods) if bias.decision == decision]
    return sorted(found, key=lambda bias: -abs(bias.mean))


class Pair(NamedTuple):
    """A method on a task, with its bias on real tasks and in a second section."""

    method: str
    task: str
    first: Effect
    second: Effect


class Comparison(NamedTuple):
    """What a second section finds for the pairs of method and task."""

    pairs: int
    """Pairs of both sections."""
    biased: list[Pair]
    """Pairs that are biased in the first section, in the order of their bias."""
    others: int
    """Pairs that are biased in the second section only."""

    @property
    def confirmed(self) -> int:
        """Number of pairs with the same verdict in both sections."""
        return sum(pair.first.decision == pair.second.decision for pair in self.biased)

    @property
    def lower(self) -> list[Pair]:
        """Pairs whose second bias is below zero, by verdict, in the order of this bias."""
        found = [pair for pair in self.biased if pair.second.decision == "biased down"]
        return sorted(found, key=lambda pair: pair.second.mean)

    @property
    def higher(self) -> int:
        """Number of pairs whose second bias is above zero, by verdict."""
        return sum(pair.second.decision == "biased up" for pair in self.biased)

    @property
    def is_removed(self) -> bool:
        """Whether no second bias is above zero, by verdict, and the interval of their average size contains zero."""
        return self.higher == 0 and self.second_size.sign == 0

    @property
    def first_size(self) -> Effect:
        """Average size of the first biases."""
        return Effect(mean=fmean(abs(pair.first.mean) for pair in self.biased))

    @property
    def second_size(self) -> Effect:
        """Average of the second biases in the direction of the first, with an interval for other tasks."""
        of_tasks: dict[str, list[float]] = {}
        for pair in self.biased:
            value = math.copysign(pair.second.mean, pair.first.mean * pair.second.mean)
            of_tasks.setdefault(pair.task, []).append(value)
        number, mean = len(of_tasks), sum(map(sum, of_tasks.values())) / len(self.biased)
        squares = sum(sum(value - mean for value in values) ** 2 for values in of_tasks.values())
        error = math.sqrt(squares * number / (number - 1)) / len(self.biased)
        reach = float(student.ppf(0.975, number - 1)) * error
        return Effect(mean=mean, low=mean - reach, high=mean + reach)


def compare(methods: Iterable[Method], section: Section) -> Comparison:
    """Compare the biases of methods on single tasks with those of a section."""
    again = {method.name: method.biases for method in section.of_state("judged")}
    both = [
        Pair(method.name, task, bias, again[method.name][task])
        for method in methods
        if method.name in again
        for task, bias in method.biases.items()
    ]
    biased = [pair for pair in both if pair.first.decision.startswith("biased")]
    others = sum(pair.second.decision.startswith("biased") for pair in both if pair not in biased)
    return Comparison(len(both), sorted(biased, key=lambda pair: -pair.first.mean), others)


def describe_refined(crossed: Comparison, section: Section) -> str:
    """Return the biases, with more folds, of the pairs that score lower with cross-fitting."""
    biases = {(method.name, task): bias for method in section.methods for task, bias in method.biases.items()}
    return ", ".join(effect_text(biases[pair.method, pair.task]) for pair in crossed.lower)


def methods_table(section: Section) -> str:
    """Return the table of the methods that are judged."""
    return markdown(
        ["method", "base", "extra", "boost", "bias", "verdict"], list(map(_cells, section.of_state("judged")))
    )


def language_models_table(sections: Mapping[str, Section], runs: Mapping[str, Run]) -> str:
    """Return one table of the methods of several sections, with the cost of their runs."""
    rows = []
    for place, section in sections.items():
        name = place.partition(",")[0]
        for method in section.of_state("judged"):
            first, *cells = _cells(method, bits=name == BITS)
            seconds = method.seconds
            if name not in PUBLISHED:
                seconds = runs[method.spec].seconds
            minutes = "" if seconds is None else f"{seconds / 60:,.1f}"
            sizes = f"{section.num_train or '-'}, {section.num_test}"
            rows.append([first, LANGUAGE_MODELS[name], sizes, *cells, str(method.subsamples), minutes])
    return markdown(
        ["method", "scored on", "train, test", "base", "extra", "boost", "bias", "verdict", "n", "minutes"], rows
    )


def find_language_models(sections: Mapping[str, Section]) -> dict[str, Section]:
    """Return the sections that share the table of language models, in its order."""
    return {
        place: section
        for name in LANGUAGE_MODELS
        for place, section in sections.items()
        if place.partition(",")[0] == name
    }


def _cells(method: Method, *, bits: bool = False) -> list[str]:
    """Return the cells that all tables of methods share: name, `base`, `extra`, boost, bias and verdict."""
    show: Callable[[float], str] = (lambda value: f"{value:.4f}") if bits else percent
    source = PUBLISHED.get(method.spec, Path("..", "specs", "atlas", f"{method.spec}.yaml"))
    return [
        f"[{method.name}]({source.as_posix()})", show(method.base), show(method.extra),
        effect_text(method.boost, bits=bits, is_bold=True), effect_text(method.bias, bits=bits, is_bold=True),
        method.bias.decision,
    ]  # fmt: skip


def describe_controls(sections: Mapping[str, Section]) -> str:
    """Return a sentence on the controls of all specs, except under rules that remove their bias."""
    controls = [
        control for name, section in sections.items() if name not in RULES for control in section.of_state("control")
    ]
    outcomes = ", ".join(sorted({control.bias.decision or "too few subsamples" for control in controls}))
    return f"Controls: {outcomes}."


def draw_official(biases: Mapping[str, Sequence[Effect]]) -> Curves:
    """Draw the biases on single test sets in their order, a panel for each method."""
    panels = []
    for name, found in biases.items():
        ordered = sorted(found, key=lambda bias: bias.mean)
        ends = (tuple(ends) for ends in zip(*map(_limits, ordered), strict=True))
        ranks, means = tuple(map(float, range(1, len(ordered) + 1))), tuple(bias.mean for bias in ordered)
        panels.append((name.rpartition(".")[2], (Curve("single test sets", ranks, means, *ends),)))
    x, y = Axis("test sets by bias", "count"), Axis("bias, accuracy points", "difference", region=REGION)
    return Curves("Bias on single test sets", x, y, tuple(panels), "95% intervals for these texts.")


def draw_pairs(replication: Comparison, crossed: Comparison) -> Curves:
    """Draw the biased pairs in the order of their bias: in the first run, with new draws, and with cross-fitting."""
    ranks = {(pair.method, pair.task): rank for rank, pair in enumerate(reversed(replication.biased), 1)}
    effects = {
        "first run": [(pair, pair.first) for pair in reversed(replication.biased)],
        "new draws": [(pair, pair.second) for pair in reversed(replication.biased)],
        "cross-fitting": [(pair, pair.second) for pair in reversed(crossed.biased)],
    }
    panels = []
    for title, found in effects.items():
        ends = (tuple(ends) for ends in zip(*(_limits(effect) for _, effect in found), strict=True))
        places = tuple(float(ranks[pair.method, pair.task]) for pair, _ in found)
        panels.append((title, (Curve("single tasks", places, tuple(effect.mean for _, effect in found), *ends),)))
    x = Axis("biased pairs, by bias in the first run", "count")
    y = Axis("bias, accuracy points", "difference", region=REGION)
    return Curves("Biased pairs of a method and a task", x, y, tuple(panels), ADJUSTED)


def _limits(effect: Effect) -> tuple[float, float]:
    """Return the interval, of zero width if there is none."""
    return (effect.mean if effect.low is None else effect.low, effect.mean if effect.high is None else effect.high)
