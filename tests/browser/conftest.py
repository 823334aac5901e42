"""Fixtures for browser tests: headless Chromium, and a report that contains every part."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from peekbench.records import Report

LONG = "community-datasets/disaster_response_messages_with_a_name_that_goes_on_and_on"
STRANGE = '<img src=x onerror="alert(1)"> 数据集 \u202eltr'


def _skip_or_fail(reason: str) -> None:
    """Skip the test, or fail if PEEKBENCH_BROWSER requires a browser."""
    if os.environ.get("PEEKBENCH_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start headless Chromium once for all tests."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _skip_or_fail("playwright is not installed; tox run -e browser")
    chromium = shutil.which("chromium")
    if chromium is None:
        _skip_or_fail("chromium is not installed; tox run -e browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def make_report(*, tasks: int = 25, methods: int = 10, subsamples: int = 6) -> Report:
    """Return a report on made-up scores, with failures and with very long and hostile names."""
    import numpy as np
    import pandas as pd

    from peekbench.records import MethodFacts
    from peekbench.records.report import Column, Table
    from peekbench.records.trials import Draw, Trial, TrialFailure
    from peekbench.report import report_of_table
    from peekbench.results import tidy
    from peekbench.results.analyze import AnalysisOptions, analyze

    rng = np.random.default_rng(0)
    rows: list[Any] = []
    names = [LONG, STRANGE, *(f"task{number}" for number in range(tasks - 2))]
    labels = ["lsa", "classic.self_training", "controls.null", *(f"method-{number}" for number in range(methods - 3))]
    for position, method in enumerate(labels):
        for task in names:
            for subsample in range(subsamples):
                scores = 0.6 + np.array([-0.05, 0, 0.01 * position]) + rng.normal(0, 0.03, 3)
                for arm, score in zip(("base", "extra", "test"), scores, strict=True):
                    rows.append((task, method, 50, 200, subsample, arm, min(1.0, np.round(score * 200) / 200)))
    table = pd.DataFrame(rows, columns=["task", "method", "num_train", "num_test", "subsample", "arm", "score"])
    results = tidy(table, "made up")
    report = report_of_table(analyze(results, AnalysisOptions(origin="scores.csv")))
    failure = TrialFailure(Trial(Draw(LONG, 50, 200, 1), "lsa"), STRANGE, "Traceback\n" + "  a long line " * 30)
    losses = Table(
        "Means of the metrics that methods recorded, by arm",
        (Column("method"), Column("metric"), Column("extra", "number"), Column("test", "number")),
        tuple((label, metric, None if metric == "loss" else 1.5, 2.25) for label in labels for metric in ("loss", "x")),
        topic="methods",
    )
    overlap = Table(
        "Duplicate texts",
        (Column("task"), Column("kind"), Column("test in extra", "fraction")),
        tuple((task, "near", 0.01) for task in names),
        topic="data",
    )
    return replace(
        report,
        name="made-up",
        warnings=("A warning.",),
        failures=(failure, failure),
        tables=(*report.tables, losses, overlap),
        methods=tuple(MethodFacts(label, "classic.lsa", "num_components 10, " * 8, "a summary") for label in labels),
        provenance={"commit": "0123456789abcdef" * 4, "machine": "a machine"},
        details={"spec": {"name": "made-up", "tasks": names}},
    )


def write_page(folder: Path, **sizes: int) -> Path:
    """Return the file of a report."""
    from peekbench.report.render.html import render_html

    path = folder / "report.html"
    path.write_text(render_html(make_report(**sizes)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of the report's file."""
    return write_page(tmp_path_factory.mktemp("report")).as_uri()
