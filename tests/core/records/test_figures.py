"""Figure records and their alternative texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from peekbench.records.figures import Axis, Curve, Curves, Densities, Figure, Forest, Interval, Sample, Violins
from peekbench.report.render.pictures import alt_text
from peekbench_stats import downsample

POINTS = Axis("bias, accuracy points")


def test_downsampled_values_have_the_same_distribution() -> None:
    values = np.random.default_rng(0).gamma(2.0, size=(4, 1000))
    downsampled = np.array(downsample(values))
    assert len(downsampled) == 200
    assert downsampled.mean() == pytest.approx(values.mean(), rel=0.02)
    for share in (0.1, 0.5, 0.9):
        assert np.quantile(downsampled, share) == pytest.approx(np.quantile(values, share), rel=0.02)


def test_a_few_values_are_all_kept_and_missing_values_are_dropped() -> None:
    assert downsample([0.3, math.nan, 0.1, 0.123456789]) == (0.1, 0.12346, 0.3)
    assert downsample([]) == ()


AVERAGE = Interval("average", 0.01, 0.002, 0.018, is_average=True)
SAMPLES = (Sample("a", (0.01, 0.02, 0.03)), Sample("b", (-0.03, -0.01), mark=0.0))


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (
            Forest("f", (("m", (Interval("a", -0.01, -0.02, -0.005), AVERAGE)),)),
            "m, a: -1.00 [-2.00, -0.50] points. m, average: +1.00 [+0.20, +1.80] points.",
        ),
        (Forest("f", (("m", (Interval("a", 0.5, 0.0, 1.0),)),), unit="number"), "m, a: 0.5 [0, 1]."),
        (
            Violins("v", POINTS, (("m", SAMPLES), ("none", (Sample("a", ()),)))),
            "m, a: mean +2.00 points. m, b: mean -2.00 points.",
        ),
        (Densities("d", POINTS, (("", SAMPLES[:1]),), 0.5, mark="truth"), "a: mean +2.00 points."),
        (Violins("v", POINTS, ()), "No values."),
        (
            Curves(
                "c",
                Axis("x", "count"),
                POINTS,
                (("p", (Curve("l", (5, 50), (0.01, 0.02), (0.0, 0.01), (0.02, 0.03)), Curve("k", (), ()))),),
            ),
            "p, l: +1.00 [0.00, +2.00] points at 5 to +2.00 [+1.00, +3.00] points at 50.",
        ),
    ],
)
def test_alt_texts_are_made_from_the_numbers(figure: Figure, text: str) -> None:
    assert alt_text(figure) == text


def test_alt_texts_describe_only_the_first_of_many_parts() -> None:
    groups = tuple((f"m{number}", (Interval("a", 0.0, 0.0, 0.0),)) for number in range(15))
    assert alt_text(Forest("f", groups)).endswith(". And 3 more.")
    assert "m12" not in alt_text(Forest("f", groups))
