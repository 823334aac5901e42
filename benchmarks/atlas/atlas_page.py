"""Writes docs/atlas.md from atlas_template.md and the numbers of the atlas: a function of docs/atlas.json alone."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from atlas_numbers import OMITTED, Atlas, Decay, Effect, Method, Protocol, Section
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pages import draw_picture, markdown, points  # whose folder `atlas_numbers` adds to the path

from peekbench.formatting import with_sign
from peekbench.records import Axis, Curve, Curves, Forest, Interval

BITS = "language modeling"
"""Section with effects in bits per byte; all others are in accuracy points."""
SMALLEST_BOOST = -0.0025
"""Methods with a smaller average boost are stress tests (docs/methods/index.md)."""
REGION = 0.005
"""Half an accuracy point, the region of practical equivalence of `summary`."""
TITLES = {
    "docstrings": "Tasks of docstrings",
    "hub": "Real tasks of the Hub",
    "language modeling": "Language modeling",
    "protocols": "Rules of adaptation",
    "protocols_hub": "Rules of adaptation on real tasks",
}
ADJUSTED = "95% intervals for new subsamples of these tasks, adjusted for all estimates."
MAX_TASKS = 6  # columns with intervals; with more tasks, the table has the estimates only


def write_page(atlas: Atlas, page: Path) -> None:
    """Write the page, and its figures into a folder of its name."""
    figures = page.with_suffix("")
    figures.mkdir(parents=True, exist_ok=True)
    for path in figures.iterdir():
        path.unlink()
    template = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=False, keep_trailing_newline=True,
    ).get_template("atlas_template.md")  # fmt: skip
    sections = [section for name, section in atlas.sections.items() if name != BITS]
    all_up, all_down = ([m for section in sections for m in biased(section, sign)] for sign in (1, -1))
    text = template.render(
        all_judged=[m for section in sections for m in section.of_state("judged")], all_up=all_up, all_down=all_down,
        split=split_stress_tests, size=lambda effect: f"{abs(effect.mean) * 100:.2f}",
        still_biased=still_biased(atlas.decay),
        largest_on_a_task=largest_on_a_task,
        main_decay=max(atlas.decay, key=lambda line: abs(line.biases[min(line.biases)].mean), default=None),
        atlas=atlas, sections=atlas.sections, omitted=OMITTED, titles=TITLES,
        hours=f"{sum(atlas.seconds.values()) / 3600:.1f}",
        methods=methods_table, tasks=tasks_table, controls=describe_controls, protocols=protocols_table,
        decay=decay_table, excluded=excluded,
        names=names, effect=effect_text, biased=biased, largest=largest,
        opposite=[method for section in atlas.sections.values() for method in section.of_state("judged")
                  if {"biased up", "biased down"} <= {bias.decision for bias in method.biases.values()}],
        membership=largest_membership(atlas), against_theorem=against_theorem(atlas), decays=average_decay(atlas.decay),
        draw_biases=lambda name: draw_picture(draw_biases(atlas.sections[name]), figures / f"{name}.svg"),
        draw_decay=lambda: draw_picture(draw_decay(atlas.decay), figures / "decay.svg"),
    )  # fmt: skip
    page.write_text(wrap_paragraphs(text), encoding="utf-8")


def wrap_paragraphs(text: str) -> str:
    """Wrap paragraphs and list items at 120 columns; tables, figures and headings keep their lines."""
    blocks = re.split(r"\n{2,}", text.strip())
    return "\n\n".join(map(_wrap_block, blocks)) + "\n"


def _wrap_block(block: str) -> str:
    if block.startswith(("|", "!", "#", "    ")):
        return block
    lines = []
    for item in re.split(r"\n(?=- |\d+\. )", block):
        bullet = re.match(r"- |\d+\. |", item)
        indent = " " * len(bullet[0] if bullet else "")
        words = " ".join(item.split())
        lines += textwrap.wrap(words, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def largest_membership(atlas: Atlas) -> str:
    """Return the largest difference between swapping one text in and adapting to all test texts, in points."""
    differences = [abs(row.effects["swap-in - test"].mean) for rows in atlas.protocols.values() for row in rows]
    return f"{max(differences) * 100:.2f}" if differences else ""


def against_theorem(atlas: Atlas) -> str:
    """Return the methods whose interval of the difference that the theorem predicts to be zero excludes zero."""
    found = [row.method for rows in atlas.protocols.values() for row in rows if row.effects["swap-in - test"].sign]
    return ", ".join(f"`{method}`" for method in found) or "none"


def average_decay(lines: Sequence[Decay]) -> list[str]:
    """Return the average size of the bias with the fewest and the most unlabeled texts, in points, and both numbers."""
    found = []
    for number in [min(lines[0].biases), max(lines[0].biases)] if lines else []:
        found += [f"{fmean(abs(line.biases[number].mean) for line in lines) * 100:.2f}", f"{number:,}"]
    return found


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


def names(methods: Iterable[Method]) -> str:
    """Return the names of methods in code style, joined by commas."""
    return ", ".join(dict.fromkeys(f"`{method.name}`" for method in methods)) or "none"


def biased(section: Section, sign: int) -> list[Method]:
    """Return the judged methods whose verdict is 'biased up' (1) or 'biased down' (-1)."""
    return [m for m in section.of_state("judged") if m.bias.decision == ("biased up" if sign > 0 else "biased down")]


def split_stress_tests(section: Section) -> tuple[list[Method], list[Method]]:
    """Return the judged methods, and those that lose accuracy with any unlabeled texts."""
    judged = section.of_state("judged")
    stress = [method for method in judged if method.boost.mean < SMALLEST_BOOST]
    return [method for method in judged if method not in stress], stress


def largest(methods: Iterable[Method]) -> Method:
    """Return the method with the largest bias."""
    return max(methods, key=lambda method: abs(method.bias.mean))


def largest_on_a_task(methods: Iterable[Method]) -> Effect:
    """Return the largest bias of a method on one task."""
    return max((bias for method in methods for bias in method.biases.values()), key=lambda bias: abs(bias.mean))


def still_biased(lines: Sequence[Decay]) -> str:
    """Return the methods that are biased with the most unlabeled texts, with the verb."""
    found = [f"`{line.method}`" for line in lines if line.biases[max(line.biases)].decision.startswith("biased")]
    return f"{', '.join(found) or 'none'} {'are' if len(found) > 1 else 'is'}"


def methods_table(name: str, section: Section) -> str:
    """Return the table of the methods that are judged."""
    bits = name == BITS
    show: Callable[[float], str] = (lambda value: f"{value:.4f}") if bits else percent
    small: Callable[[float], str] = (lambda value: f"{value:.4f}") if bits else (lambda value: f"{value * 100:.2f}")
    head = [
        "method",
        "options",
        "majority",
        "base",
        "extra",
        "boost",
        "bias",
        "verdict",
        "sd of tasks",
        "detectable",
        "n",
    ]
    body = [
        [
            f"[{method.name}](../specs/atlas/{method.spec}.yaml)",
            f"`{method.options}`" if method.options else "default",
            percent(method.majority), show(method.base), show(method.extra),
            effect_text(method.boost, bits=bits, is_bold=True), effect_text(method.bias, bits=bits, is_bold=True),
            method.bias.decision, small(method.spread), "" if method.detectable is None else small(method.detectable),
            str(method.subsamples),
        ]
        for method in section.of_state("judged")
    ]  # fmt: skip
    return markdown(head, body)


def describe_controls(name: str, section: Section) -> str:
    """Return a sentence on the controls of all specs of a section."""
    controls = section.of_state("control")
    outcomes = ", ".join(sorted({control.bias.decision or "too few subsamples" for control in controls}))
    parts = []
    for kind, what in (("null", "ignores unlabeled texts"), ("leak", "knows a quarter of the labels")):
        biases = [control.bias.mean for control in controls if control.name.startswith(kind)]
        if biases:
            low, high = (effect_text(Effect(mean=of(biases)), bits=name == BITS) for of in (min, max))
            parts.append(f"`controls.{kind}` ({what}) has a bias of {low if low == high else f'{low} to {high}'}")
    return f"Controls of all specs: {outcomes}. " + "; ".join(parts) + "."


def tasks_table(name: str, section: Section) -> str:
    """Return the table of biases by task."""
    methods = section.of_state("judged")
    tasks = list(methods[0].biases)
    bits = name == BITS

    def show(effect: Effect) -> str:
        if len(tasks) > MAX_TASKS:
            effect = Effect(mean=effect.mean, decision=effect.decision)
        return effect_text(effect, bits=bits, is_bold=True)

    heads = ["method", *(task.partition(".")[2] or task for task in tasks)]
    return markdown(heads, [[m.name, *(show(m.biases[task]) for task in tasks)] for m in methods])


def excluded(section: Section) -> str:
    """Return the table of methods that are not judged, and why."""
    reasons = {"inert": "the unlabeled texts change no score", "at chance": "not better than the most frequent class"}
    return markdown(
        ["method", "not judged because", "majority", "base", "extra"],
        [
            [method.name, reasons[method.state], percent(method.majority), percent(method.base), percent(method.extra)]
            for method in section.of_state("inert", "at chance")
        ],
    )


def protocols_table(protocols: Sequence[Protocol]) -> str:
    """Return the table of the effects of arms."""
    arms = list(protocols[0].effects)
    return markdown(
        ["method", "extra", *arms],
        [
            [each.method, percent(each.extra), *(effect_text(each.effects[arm], is_bold=True) for arm in arms)]
            for each in protocols
        ],
    )


def decay_table(lines: Sequence[Decay]) -> str:
    """Return the table of biases by number of unlabeled texts."""
    numbers = list(lines[0].biases)
    return markdown(
        ["method", *(f"{number:,}" for number in numbers)],
        [[line.method, *(effect_text(line.biases[number], is_bold=True) for number in numbers)] for line in lines],
    )


def draw_biases(section: Section) -> Forest:
    """Draw boost and bias side by side, methods in order of their bias."""
    methods = sorted(section.of_state("judged"), key=lambda method: -method.bias.mean)
    groups = tuple(
        (title, tuple(Interval(method.name, effect.mean, *_limits(effect)) for method in methods
                      for effect in [getattr(method, which)]))
        for title, which in (("boost: extra minus base", "boost"), ("bias: test minus extra", "bias"))
    )  # fmt: skip
    return Forest(
        "Boost and bias", groups, "In order of the bias. " + ADJUSTED, "difference", "accuracy points", REGION
    )


def draw_decay(lines: Sequence[Decay]) -> Curves:
    """Draw the bias by number of unlabeled texts, a panel for each method."""
    panels = []
    for line in lines:
        limits = [_limits(effect) for effect in line.biases.values()]
        means = tuple(effect.mean for effect in line.biases.values())
        ends = (tuple(ends) for ends in zip(*limits, strict=True))
        panels.append((line.method, (Curve("mean of these tasks", tuple(map(float, line.biases)), means, *ends),)))
    x = Axis("unlabeled texts, as many as test texts", "count", is_log=True)
    y = Axis("bias, accuracy points", "difference", region=REGION)
    return Curves("Bias by number of unlabeled texts", x, y, tuple(panels), ADJUSTED)


def _limits(effect: Effect) -> tuple[float, float]:
    """Return the interval, of zero width if there is none."""
    return (effect.mean if effect.low is None else effect.low, effect.mean if effect.high is None else effect.high)
