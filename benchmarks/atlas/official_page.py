"""Tables, figures and facts on official test sets for docs/atlas.md and docs/rules.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb
from statistics import fmean, median

from atlas_records import Cell, Effect, Official, State
from pages import markdown, points

EXPECTED = {"lsa-10", "lsa-50", "transductive.batch_statistics", "embedding.whitening"}
"""Methods that were expected to be biased."""
MANY = 10
"""Test sets of a method in the figure."""
DECISIONS = ("biased up", "biased down", "equivalent", "inconclusive")


class OfficialFacts:
    """What the page states on official test sets: cells are pairs of a method and a test set that are judged."""

    def __init__(self, official: Official) -> None:
        self.sets = [found for sets in official.sets.values() for found in sets.values()]
        self.tasks = {task for sets in official.sets.values() for task in sets}
        self.sizes = official.sizes
        self.every = [cell for found in self.sets for cell in found.methods]
        self.cells = [cell for cell in self.every if cell.state == "judged"]
        self.of_spec = {
            spec: [cell for found in sets.values() for cell in found.methods] for spec, sets in official.sets.items()
        }
        self.methods = list(dict.fromkeys(cell.method for cell in self.every))
        self.by_method = {name: [cell for cell in self.cells if cell.method == name] for name in self.methods}

    def count(self, decision: str, cells: Iterable[Cell] | None = None) -> int:
        """Return the number of cells with a decision on these texts."""
        return sum(cell.bias.decision == decision for cell in (self.cells if cells is None else cells))

    def count_others(self, decision: str) -> int:
        """Return the number of cells with a decision for other texts."""
        return sum(cell.others.decision == decision for cell in self.cells)

    @property
    def biased(self) -> list[Cell]:
        """Cells that are biased on these texts, by bias."""
        found = [cell for cell in self.cells if cell.bias.decision.startswith("biased")]
        return sorted(found, key=lambda cell: cell.bias.mean)

    @property
    def median_size(self) -> float:
        """Median absolute bias of the judged cells."""
        return median(abs(cell.bias.mean) for cell in self.cells)

    @property
    def light(self) -> list[Cell]:
        """Judged cells of the specs that have the first hypotheses."""
        cells = [*self.of_spec["official"], *self.of_spec["official_hub"]]
        return [cell for cell in cells if cell.state == "judged"]

    def count_within(self, size: float) -> int:
        """Return the number of light cells whose bias is at most as large as a fraction of right answers."""
        return sum(abs(cell.bias.mean) <= size for cell in self.light)

    def share_biased(self, *, is_expected: bool) -> float:
        """Return the share of biased cells of light methods that were expected to be biased, or of the others."""
        cells = [cell for cell in self.light if (cell.method in EXPECTED) == is_expected]
        return fmean(cell.bias.decision.startswith("biased") for cell in cells)

    def decisions(self, spec: str, task: str, *methods: str) -> str:
        """Return the verdicts on methods on one test set, in the order of the spec."""
        return ", ".join(cell.bias.decision for cell in self._choose(spec, methods) if cell.task == task)

    def count_state(self, spec: str, method: str, state: State) -> str:
        """Return on how many test sets of a spec a method has a state."""
        states = [cell.state for cell in self._choose(spec, [method])]
        return f"{states.count(state)} of {len(states)} sets"

    def extremes(self, spec: str, *methods: str, effect: str = "bias") -> str:
        """Return the smallest and the largest effect of methods, by default of all of a spec."""
        found = [cell.boost if effect == "boost" else cell.bias.mean for cell in self._choose(spec, methods)]
        return f"{points(min(found))} to {points(max(found))}"

    def _choose(self, spec: str, methods: Sequence[str]) -> list[Cell]:
        return [cell for cell in self.of_spec[spec] if not methods or cell.method in methods]

    def order(self, what: str) -> float:
        """Return the share of pairs of methods, of one spec on one test set, in another order."""
        compared = [found for found in self.sets if found.order]
        pairs = [comb(sum(cell.state == "judged" for cell in found.methods), 2) for found in compared]
        return fmean((found.order[what] for found in compared), weights=pairs)

    @property
    def controls(self) -> str:
        """Number of test sets by verdict on a control."""
        verdicts = Counter(bias.decision for found in self.sets for bias in found.controls.values())
        return ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items())

    @property
    def leak(self) -> str:
        """Smallest and largest bias of the positive control."""
        biases = [found.controls["positive"].mean for found in self.sets]
        return f"{points(min(biases))} to {points(max(biases))}"

    @property
    def boosts(self) -> str:
        """Smallest and largest mean boost of a method."""
        means = [fmean(cell.boost for cell in cells) for cells in self.by_method.values() if cells]
        return f"{points(min(means))} to {points(max(means))}"

    @property
    def factors(self) -> str:
        """What the regression says, in a sentence."""
        return ", ".join(f"{size.quantity} {size.factor.mean:.2f}" for size in self.sizes)

    def methods_table(self) -> str:
        """Return a row for each method: means over test sets, range of the bias, and counts of verdicts."""
        body = []
        for name, cells in self.by_method.items():
            if not cells:
                continue
            biases = [cell.bias.mean for cell in cells]
            counts = "/".join(str(self.count(decision, cells)) for decision in DECISIONS)
            body.append([
                name, *(f"{100 * fmean(values):.1f}" for values in _scores(cells)),
                points(fmean(cell.boost for cell in cells)), points(fmean(biases)),
                f"{points(min(biases))}, {points(max(biases))}", counts,
                f"{fmean(cell.seconds for cell in cells):.1f}",
            ])  # fmt: skip
        headings = [
            "method", "base", "usual", "to publish", "balanced", "boost", "bias", "smallest, largest",
            "up/down/equivalent/undecided", "seconds",
        ]  # fmt: skip
        return markdown(headings, body)

    def biases(self) -> dict[str, list[Effect]]:
        """Return the biases of each method with many test sets, for its figure."""
        return {name: [cell.bias for cell in cells] for name, cells in self.by_method.items() if len(cells) >= MANY}

    def sizes_table(self) -> str:
        """Return the factors of the regression."""
        rows = []
        for size in self.sizes:
            assert size.factor.low is not None
            assert size.factor.high is not None
            rows.append([size.quantity, f"{size.factor.mean:.2f} [{size.factor.low:.2f}, {size.factor.high:.2f}]"])
        return markdown(["doubling", "size of the bias times"], rows)


def _scores(cells: Sequence[Cell]) -> list[list[float]]:
    return [
        [cell.base for cell in cells], [cell.usual for cell in cells], [cell.publish.mean for cell in cells],
        [cell.balanced[1] for cell in cells],
    ]  # fmt: skip
