"""Arms: the unlabeled texts of each fit, the texts that it predicts, and what both do to the bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stored_scores import find_wrong_scores

from peekbench.data.loading import load_dataset, make_task
from peekbench.data.sampling import Sampler, seed_of_fit
from peekbench.errors import SpecError
from peekbench.execution.fit_plans import count_fits, count_work, plan_arm, rows_of
from peekbench.execution.fits import Fit, Prediction, run_arms
from peekbench.execution.prediction_checks import compute_scores, take
from peekbench.execution.runner import run
from peekbench.records.answers import Predicted
from peekbench.records.data import Labeled
from peekbench.records.scores import SCORES
from peekbench.records.trials import Context, Subsample
from peekbench.results import load_results, pair_arms
from peekbench.spec.arms import BASE, BLOCK_RULES, EXTRA, MAX_FITS, NAMED, TEST, Arm
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store

MakeSpec = Callable[..., ExperimentSpec]
TEST_ROWS, EXTRA_ROWS = np.arange(200, 220), np.arange(100, 120)
ROWS = Subsample(np.arange(5), (TEST_ROWS, EXTRA_ROWS), np.arange(0))
DESIGN = {"num_train": 12, "num_test": 30, "num_subsamples": 3}


def parts_of(arm: Arm, subsample: Subsample = ROWS, *, crossover: bool = False) -> list[tuple[list[int], list[int]]]:
    """Return the predicted rows and the unlabeled rows of each fit, sets and parts in order."""
    return [
        (
            rows_of(part, subsample.sets).tolist(),
            [row for group in seen or () for row in rows_of(group, subsample.sets)],
        )
        for of_set in plan_arm(arm, len(subsample.sets), len(subsample.test), crossover=crossover)
        for part, seen in of_set
    ]


def test_base_extra_and_test_predict_the_whole_set() -> None:
    for arm, seen in ((BASE, []), (EXTRA, EXTRA_ROWS.tolist()), (TEST, TEST_ROWS.tolist())):
        assert parts_of(arm) == [(TEST_ROWS.tolist(), seen)]


@pytest.mark.parametrize(("share", "peeked"), [(0.25, 5), (0.33, 7), (0.75, 15)])
def test_doses_contain_their_share_of_test_rows(share: float, peeked: int) -> None:
    ((predicted, seen),) = parts_of(Arm(kind="mix", mix=share))
    assert predicted == TEST_ROWS.tolist()
    assert seen == [*TEST_ROWS[:peeked], *EXTRA_ROWS[peeked:]]


@pytest.mark.parametrize("blocks", [2, 3, 20, None])
def test_each_block_is_predicted_once_by_a_fit_to_the_right_rows(blocks: int | None) -> None:
    for kind in BLOCK_RULES:
        arm = Arm(kind=kind, blocks=blocks)
        parts = parts_of(arm)
        assert len(parts) == (blocks or 20)
        assert [row for predicted, _ in parts for row in predicted] == TEST_ROWS.tolist()
        assert max(len(predicted) for predicted, _ in parts) - min(len(predicted) for predicted, _ in parts) <= 1
        for predicted, seen in parts:
            block, own, other = set(predicted), set(seen) & set(TEST_ROWS), set(seen) & set(EXTRA_ROWS)
            assert len(seen) == len(set(seen))
            expected = {
                "cross": set(TEST_ROWS) - block,
                "prequential": {row for row in TEST_ROWS if row < min(block)},
                "stream": {row for row in TEST_ROWS if row <= max(block)},
                "blocks": block,
                "batches": set(),
                "swap-in": block,
            }[kind]
            assert own == expected
            assert len(other) == {"swap-in": 20 - len(block), "batches": 20}.get(kind, 0)


def test_each_set_has_its_turn_with_crossover_scoring() -> None:
    sets = Subsample(np.arange(5), (np.arange(10, 14), np.arange(20, 24), np.arange(30, 34)), np.arange(0))
    predicted = [row for rows, _ in parts_of(Arm(kind="swap-in", blocks=2), sets, crossover=True) for row in rows]
    assert predicted == [*range(10, 14), *range(20, 24), *range(30, 34)]
    assert [seen for _, seen in parts_of(Arm(kind="swap-in", blocks=2), sets, crossover=True)] == [
        [10, 11, 22, 23], [20, 21, 12, 13], [20, 21, 32, 33], [30, 31, 22, 23], [30, 31, 12, 13], [10, 11, 32, 33],
    ]  # fmt: skip
    assert len(parts_of(EXTRA, sets, crossover=True)) == 6
    assert len(parts_of(Arm(kind="mix", mix=0.5), sets, crossover=True)) == 3


def test_fits_to_the_same_rows_are_one_fit() -> None:
    def count(*arms: Arm, num_sets: int = 2, crossover: bool = True) -> int:
        return count_fits(plan_arm(arm, num_sets, 20, crossover=crossover) for arm in (EXTRA, TEST, *arms))

    stream, halves = Arm(kind="stream", blocks=4), Arm(kind="swap-in", blocks=2)
    assert count() == count(crossover=False) == 2
    assert count(num_sets=4) == 4
    assert count(stream, crossover=False) == 2 + 3  # the last block sees the test set
    assert count(stream, Arm(kind="blocks", blocks=4)) == 2 + 6 + 6  # their first blocks see the same
    assert count(Arm(kind="mix", mix=0.5), halves) == 2 + 2 + 0  # the dose of one set is the other half of the other
    assert count(NAMED["single"], NAMED["swap-in"]) == 2 + 40 + 40
    assert count(NAMED["alone"], Arm(kind="batches", blocks=3)) == 2, "they have no fits of their own"
    assert (
        count(NAMED["prequential"], stream) == 2 + 1 + 38 + 0
    )  # one fit without texts; three of stream are among them


def test_the_time_of_a_fit_is_divided_among_its_uses() -> None:
    sets = Subsample(
        np.arange(5), tuple(np.arange(100 * number, 100 * number + 20) for number in range(3)), np.arange(0)
    )
    predicted = Prediction(Predicted(np.zeros(20)), None, 0.0)

    def run(rows: Any, parts: Any) -> Fit:
        return Fit(1.0, {}, dict.fromkeys(parts, predicted))

    def score(predictions: Any, rows: Any, texts: Any) -> Any:
        return dict.fromkeys((score.name for score in SCORES), 1.0)

    rules = [NAMED["alone"], Arm(kind="stream", blocks=2), Arm(kind="blocks", blocks=2), NAMED["prequential"]]
    results = {scored.arm: scored for scored in run_arms([BASE, EXTRA, TEST, *rules], sets, run, score, crossover=True)}
    seconds = {name: scored.fit_seconds for name, scored in results.items()}
    assert [seconds.pop(arm) for arm in ("base", "extra", "test")] == pytest.approx([1.0, 2.0, 1.0])
    # Rules pay only for fits that no other arm has. Three of them share those to the first half of each set.
    assert seconds == pytest.approx({"alone": 0.0, "stream-2": 1.0, "blocks-2": 1.0 + 3, "prequential": 1.0 + 3 * 18})


def test_membership_decides_what_each_rule_is_worth(make_spec: MakeSpec) -> None:
    """A method that knows the labels of its unlabeled texts is right about members, and as `extra` about others."""
    rules = [{"cross": 3}, {"prequential": 3}, {"stream": 4}, {"blocks": 5}, "single", {"swap-in": 3}]
    spec = make_spec(
        methods=[{"use": "controls.leak", "options": {"share": 1.0}}],
        arms=["base", "extra", "test", {"mix": 0.5}, *rules],
        design={"num_train": 12, "num_test": 12, "num_subsamples": 2, "crossover": 3},
    )
    path = run(spec).store
    wide = pair_arms(load_results(path))
    for arm in ("cross-3", "prequential-3"):
        assert np.allclose(wide[arm], wide["extra"])
    for arm in ("stream-4", "blocks-5", "single", "swap-in-3"):
        assert np.allclose(wide[arm], wide["test"])
    assert (wide["test"] > wide["extra"]).all()
    gain = (wide["mix-0.5"] - wide["extra"]) / (wide["test"] - wide["extra"])
    assert ((gain > 0) & (gain < 1)).all()
    assert gain.mean() == pytest.approx(0.5, abs=0.2)
    assert find_wrong_scores(path) == []
    with Store.open(path) as store:
        answers = store.answers("a", "controls.leak", 12, 12, ["extra", "single"])
    assert np.allclose(answers.scores["single"].mean(axis=1), wide.xs("a", level="task")["single"])


@pytest.mark.parametrize(("use", "options", "kind"), [("classic.lsa", {"num_components": 3}, None),
                                                      ("lm.ngram", {"order": 2}, "language_modeling")])  # fmt: skip
def test_prequential_scores_are_those_of_a_loop_over_blocks(
    use: str, options: dict[str, Any], kind: Any, make_spec: MakeSpec
) -> None:
    """Each block is scored by a fit to the blocks before it, and only then adapted to."""
    crossover = 2
    spec = make_spec(
        tasks=[{"use": "toy.words", "name": "a", "kind": kind}],
        methods=[{"use": use, "options": options}],
        arms=["base", "extra", "test", "prequential", {"prequential": 3}],
        design={**DESIGN, "num_test": 10, "num_subsamples": 2, "crossover": crossover},
    )
    wide = pair_arms(load_results(run(spec).store))
    data, task = load_dataset(spec.source(spec.tasks[0])), make_task(spec, spec.tasks[0])
    sampler, method = Sampler(data, spec.design, spec.seed, "a"), spec.methods[0]
    for number, trial in enumerate(spec.trials()):
        drawn = sampler.draw(trial.draw)
        train = Labeled(take(data.inputs, drawn.train), sampler.labels[drawn.train])
        context = Context(seed_of_fit(spec.seed, *trial.draw), 1, spec.folders())
        for arm, starts in (("prequential", range(10)), ("prequential-3", (0, 3, 6))):
            scores: list[Any] = []
            for of_set in drawn.sets[:crossover]:
                predictions = []
                for start, block in zip(starts, np.split(of_set, starts)[1:], strict=True):
                    earlier = take(data.inputs, of_set[:start]) if start else None
                    predictor = method.entry.method(earlier, train, task, context=context, options=method.options)
                    predictions.append(predictor.predict(take(data.inputs, block)))
                scores.append(
                    compute_scores(Predicted(np.concatenate(predictions)), sampler.labels[of_set], task)["score"]
                )
            assert wide[arm].iloc[number] == pytest.approx(np.mean(scores), rel=1e-6), arm


def test_the_cost_of_rules_is_counted(make_spec: MakeSpec) -> None:
    arms = ["base", "extra", "test", {"cross": 5}, "single"]
    size = count_work(make_spec(methods=["toy.vote"], arms=arms, design=DESIGN))
    assert size.trials == 6
    assert size.fits == 6 * (3 + 2 * 5 + 2 * 30)
    online = make_spec(methods=["toy.vote"], arms=[*arms, {"prequential": 5}], design=DESIGN)
    # The first block is predicted by the fit of base, and the last one by that of cross-5.
    assert count_work(online).fits == size.fits + 6 * 2 * 3


@pytest.mark.parametrize(
    ("arm", "design", "message"),
    [
        ({"cross": 31}, {}, r"arms\[3\]: cross-31 with num_test 30 has 31 blocks; use 2 to 30"),
        ("swap-in", {"num_test": 501}, r"arms\[3\]: swap-in with num_test 501 takes 1,002 fits of each method in each "
         r"trial, .* of 2 sets, .* use fewer blocks, such as `swap-in: 20`"),
        ("cross", {}, r"arms\[3\]: 'cross' needs a number of blocks; write `cross: 5`"),
        ({"stream": 1}, {}, r"arms\[3\]\.stream: 1 is not a number of blocks; use 2 or more"),
        ({"prequential": 5}, {"num_unlabeled": 40}, r"prequential-5 predicts the first block without unlabeled texts; "
         r"remove it, or design.num_unlabeled"),
        ({"croos": 7}, {}, r"arms are base, extra, test, .*, and blocks such as `cross: 5`"),
    ],
)  # fmt: skip
def test_impossible_rules_are_refused(arm: Any, design: Any, message: str, make_spec: MakeSpec) -> None:
    with pytest.raises(SpecError, match=message):
        make_spec(arms=["base", "extra", "test", arm], design={**DESIGN, **design})
    assert MAX_FITS == 1000
