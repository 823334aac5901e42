"""Writes docs/rules.md: what communities allow, the arms that measure it, and what these were worth in published runs.

    python benchmarks/atlas/rules_page.py [--output PAGE]

The figures are those of docs/atlas.json, docs/methods/all_rows.csv and reports/published.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import atlas_numbers  # noqa: F401 - adds the folder of `pages` to the path
from atlas_page import BITS, effect_text, wrap_paragraphs
from atlas_records import Atlas, Effect
from pages import markdown

from peekbench.execution.fit_plans import count_fits, plan_arm
from peekbench.spec.arms import BLOCK_RULES, NAMED, TEST, Arm

ROOT = Path(__file__).parents[2]
NUM_TEST = 200
CROSS = Arm(kind="cross", blocks=5)
STREAM, PREQUENTIAL, BATCHES = (Arm(kind=kind, blocks=10) for kind in ("stream", "prequential", "batches"))
SINGLE, ALONE = NAMED["single"], NAMED["alone"]
ORIGIN = "https://github.com/peekbench/peekbench/tree/main/reports/published"


@dataclass(frozen=True)
class Card:
    """The rule of a community."""

    title: str
    practice: str
    """What the community allows, in Markdown with sources."""
    arms: Sequence[Arm]
    """Arms that measure it."""
    rules: Sequence[str]
    """Kinds of arms whose rules can be adopted."""
    of_rules: Sequence[str] = ()
    """Published reports, and methods of the table of rules in the atlas, with figures on these arms."""
    of_sections: Sequence[str] = ()
    """Methods of `SECTIONS` of the atlas with figures on these arms."""
    remark: str = ""
    """Sentence after the table."""


CARDS = (
    Card(
        "Language-model competitions",
        "A token is scored before a model trains on it. Parameter Golf [ruled "
        "out](https://github.com/openai/parameter-golf/issues/402) training on the evaluation tokens first, after "
        "[disputes](https://github.com/openai/parameter-golf/issues/1082), and participants wrote "
        "[conditions](https://github.com/openai/parameter-golf/issues/1017). Here, the unit is a text.",
        (TEST, STREAM, PREQUENTIAL, SINGLE),
        ("prequential",),
        of_rules=("rules_language_modeling",),
        of_sections=("lm.pretraining", "lm.dynamic_evaluation"),
        remark="`lm.dynamic_evaluation` scores each text before it trains on it, in one fit.",
    ),
    Card(
        "Test-time training",
        "A model trains on the unlabeled test inputs and is scored on them, on all together as in "
        "[TTRL](https://github.com/PRIME-RL/TTRL/issues/1), whose readers ask whether this is training on test data, "
        "or on each input alone.",
        (TEST, SINGLE),
        ("test", "single"),
        of_rules=("lsa-10", "classic.self_training"),
        of_sections=("generation.majority_vote",),
    ),
    Card(
        "Competitions with public test inputs",
        "Rules differ. DrivenData asks participants to [process each test sample "
        "independently](https://community.drivendata.org/t/test-data-question/7498), but [permits "
        "pseudo-labels](https://community.drivendata.org/t/pseudo-labeling-allowance/6213) in some competitions. "
        "[VIPriors](https://github.com/VIPriors/vipriors-challenges-toolkit/issues/62), "
        "[TAO](https://github.com/TAO-Dataset/tao/issues/7) and the [Perception "
        "Test](https://github.com/google-deepmind/perception_test/issues/21) forbid unlabeled training on test data. A "
        "[winner on Kaggle](https://stats.stackexchange.com/revisions/188125/3) predicted each quarter of the test set "
        "with pseudo-labels of the others, which is `cross: 4`.",
        (TEST, CROSS),
        ("not test", "cross"),
        of_sections=("classic.self_training", "transductive.batch_statistics"),
    ),
    Card(
        "Retrieval leaderboards",
        "An encoder may see the texts that are scored: a [proposal for "
        "MTEB](https://github.com/embeddings-benchmark/mteb/pull/2076) gives contextual encoders a sample of a task.",
        (TEST,),
        ("not test",),
        of_sections=("embedding.context", "embedding.whitening", "embedding.all_but_the_top"),
    ),
    Card(
        "Few-shot benchmarks",
        "RAFT publishes 50 labeled texts and the unlabeled test set of a task, and [encourages unsupervised "
        "pretraining](https://arxiv.org/abs/2410.00179) on the latter.",
        (TEST, CROSS),
        ("cross",),
        of_sections=("lsa-10", "lsa-50", "prompting.batch_calibration"),
        remark="Pretraining BERT, GPT-2 and Mistral 7B: [the study](explanation/bias.md#what-is-known).",
    ),
    Card(
        "Transductive boards of graphs and tables",
        "Test rows may affect each other's predictions. OGB has [one "
        "leaderboard](https://github.com/snap-stanford/ogb/issues/27) for transductive and inductive methods, CD-FSL "
        "[permitted](https://github.com/IBM/cdfsl-benchmark/issues/26) implicit transduction in its first track, and a "
        "[proposal for TabPFN](https://github.com/PriorLabs/TabPFN/pull/775) distinguishes predictions in which test "
        "rows attend to each other.",
        (TEST, BATCHES, ALONE),
        ("alone",),
        of_rules=("rules_joint",),
        remark="`fit` standardizes features by [the texts that it predicts "
        "together](https://github.com/peekbench/peekbench/blob/main/specs/batch_statistics.py). {tabular}",
    ),
)
RULES = {
    "test": "Methods may adapt to the unlabeled texts of the test set",
    "not test": "Methods must not adapt to the unlabeled texts of the test set",
    "cross": (
        "The test texts are divided into {blocks} blocks, and a model that predicts a block has not adapted to any of "
        "its texts"
    ),
    "prequential": (
        "The test texts arrive in a fixed order, and a model that predicts a text has adapted neither to it nor to "
        "any later one"
    ),
    "alone": "Each test text is predicted by itself",
    "single": "A model that predicts a test text has adapted to no other test text",
}
"""Rules of a benchmark that the arms implement, by kind of arm; 'not test' is the opposite of that of 'test'."""
SECTIONS = {"hub": TEST, "cross-fitting": CROSS, BITS: TEST, "in context, 0, 40": TEST, "sums, 5, 30": TEST}
"""Sections of the atlas to the arm of their biases."""
REPORTS = ("rules_language_modeling", "rules_joint")
"""Published reports with a table of rules."""


def read_rules(report: str, root: Path = ROOT) -> dict[str, dict[str, Effect]]:
    """Return the effects of a published report by method and rule."""
    document = json.loads((root / "reports" / "published" / report / "report.json").read_text("utf-8"))
    table = next(table for table in document["tables"] if table["title"].startswith("What each rule is worth"))
    columns = [column["name"] for column in table["columns"]]
    found: dict[str, dict[str, Effect]] = {}
    for cells in table["rows"]:
        row: dict[str, Any] = dict(zip(columns, cells, strict=True))
        estimate = {name: row["minus extra"][name] for name in ("mean", "low", "high")}
        found.setdefault(row["method"], {})[row["rule"]] = Effect(**estimate, decision=row["verdict"])
    return found


def list_worths(card: Card, arm: Arm, atlas: Atlas) -> Iterator[str]:
    """Yield what an arm was worth, for each method with figures."""
    for name in filter(REPORTS.__contains__, card.of_rules):
        for label, effects in read_rules(name).items():
            if arm.name in effects:
                yield f"`{label}` {effect_text(effects[arm.name], bits='language' in name)}"
    for protocol in atlas.protocols["protocols"]:
        effect = protocol.effects.get(f"{arm.name} - extra")
        if protocol.method in card.of_rules and effect is not None:
            yield f"`{protocol.method}` {effect_text(effect)}"
    for section in (section for section, measured in SECTIONS.items() if measured == arm):
        for method in atlas.sections[section].methods:
            if method.name in card.of_sections and method.state == "judged":
                yield f"`{method.name}` {effect_text(method.bias, bits=section == BITS)}"


def describe_arm(arm: Arm) -> str:
    """Return how an arm predicts texts."""
    if arm == TEST:
        return "All, predicted by a fit to all of them"
    blocks = f"{arm.blocks} blocks"
    if arm.blocks is None:
        blocks = "Texts"
    return BLOCK_RULES[arm.kind].summary.replace("Blocks", blocks).rstrip(".")


def describe_fits(arm: Arm) -> str:
    """Return the number of fits of an arm, for a set of `NUM_TEST` texts."""
    if arm.kind == "batches":
        return "as `extra`"
    return str(count_fits([plan_arm(arm, 2, NUM_TEST, crossover=False)]))


def write_card(card: Card, atlas: Atlas) -> str:
    """Return the section of a card."""
    rows = [
        (
            f"`{arm.name}`",
            describe_arm(arm),
            describe_fits(arm),
            "; ".join(list_worths(card, arm, atlas)),
        )
        for arm in card.arms
    ]
    table = markdown(("arm", "texts", "fits", "minus `extra`"), rows)
    blocks = {arm.kind: arm.blocks for arm in card.arms}
    rules = [f"> {RULES[kind].format(blocks=blocks.get(kind))}." for kind in card.rules]
    remark = card.remark.format(tabular=describe_tabular())
    return "\n\n".join(filter(None, (f"## {card.title}", card.practice, table, remark, *rules)))


def describe_tabular(root: Path = ROOT) -> str:
    """Return how often steps of tabular methods that saw the test rows were biased."""
    with (root / "docs" / "methods" / "all_rows.csv").open(encoding="utf-8", newline="") as file:
        verdicts = Counter(row["verdict"].partition(" ")[0] for row in csv.DictReader(file))
    return (
        f"Scalers, imputers, PCA and selection on [14 tables](methods/tabular.md#real-tables): of "
        f"{verdicts.total()} results, {verdicts['equivalent']} are equivalent and {verdicts['biased']} biased."
    )


HEAD = """# Rule cards

What communities allow, the [arms](statistics/sizes.md#rules-of-adaptation) that measure it, what these were worth in
our runs, and sentences for the rules of a benchmark. Differences from `extra`, which adapts to independent texts, are
in points, or in bits per byte with four decimals; fits are for {num_test} texts. They hold for these methods, texts and
sizes only: [measure your own](guides/my-benchmark.md). Sources: the [atlas](atlas.md), two [reports]({origin}), and
`python benchmarks/atlas/rules_page.py`, which writes this page."""


def write_page(atlas: Atlas, page: Path) -> None:
    """Write the page."""
    cards = [write_card(card, atlas) for card in CARDS]
    text = "\n\n".join([HEAD.format(num_test=NUM_TEST, origin=ORIGIN), *cards])
    page.write_text(wrap_paragraphs(text), encoding="utf-8")


def main() -> None:
    """Write the page from the published figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "rules.md", help="page (default: %(default)s)")
    arguments = parser.parse_args()
    atlas = Atlas.model_validate_json((ROOT / "docs" / "atlas.json").read_text("utf-8"))
    write_page(atlas, arguments.output)


if __name__ == "__main__":
    main()
