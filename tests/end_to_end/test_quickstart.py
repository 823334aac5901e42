"""The quickstart: its scores, those in docs/quickstart/scores.csv, match new runs, README.md and docs/quickstart.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import run_command

import peekbench as pb
from peekbench.results.paired_effects import paired_scores

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
QUICKSTART = ROOT / "docs" / "quickstart.md"
SCORES = ROOT / "docs" / "quickstart" / "scores.csv"
SUBSAMPLES = 2  # of 50; a subsample does not depend on their number


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Any]:
    """The verdicts of the whole quickstart, by method."""
    return {verdict.method: verdict for verdict in pb.analyze(SCORES, analyses=["summary"]).verdicts}


@pytest.mark.slow
def test_a_small_run_has_the_stored_scores_and_controls_with_their_known_bias() -> None:
    text = (ROOT / "specs" / "quickstart.yaml").read_text()
    for whole, part in (("num_subsamples: 50", f"num_subsamples: {SUBSAMPLES}"), ("workers: 2", "in_process: true")):
        assert whole in text
        text = text.replace(whole, part)
    Path("quickstart.yaml").write_text(text)
    done = run_command("run", "quickstart.yaml")
    assert done.returncode == 0, done.stderr
    results = pb.load_results("runs/quickstart.sqlite")

    trials = ["task", "method", "num_train", "num_test", "num_scored", "subsample"]
    stored = pd.read_csv(SCORES).set_index(trials)[["base", "extra", "test"]]
    assert stored.groupby(["task", "method"]).size().unique().tolist() == [50]
    scores = results.pivot(index=trials, columns="arm", values="score")
    # Single predictions may differ, because rounding in linear algebra differs between processors.
    differences = (stored.loc[scores.index] - scores).abs().groupby("method").mean()
    assert (differences < 0.001).all(axis=None), "see docs/releasing.md"

    wide = paired_scores(results)
    assert len(wide) == 5 * 5 * SUBSAMPLES
    null = wide[wide["method"] == "controls.null"]
    assert (null["bias"] == 0).all()
    assert (null["boost"] == 0).all()
    leak = wide[wide["method"] == "controls.leak"]
    planted = 0.25 * (1 - leak["extra"])
    error = (leak["bias"] - planted).std() / len(leak) ** 0.5
    assert leak["bias"].mean() == pytest.approx(planted.mean(), abs=3 * error)
    report = json.loads(Path("reports/quickstart/report.json").read_text())
    metrics = next(table for table in report["tables"] if table["title"].startswith("Means of the metrics"))
    (recorded,) = [row for row in metrics["rows"] if row[:2] == ["controls.leak", "planted_gain"]]
    place = [column["name"] for column in metrics["columns"]].index("test")
    assert recorded[place] == pytest.approx(leak["bias"].mean())
    decisions = {verdict["method"]: verdict["decision"] for verdict in report["verdicts"] if verdict["control"]}
    assert decisions == {"controls.null": "passed", "controls.leak": "passed"}


def test_verdicts_match_the_documentation(verdicts: dict[str, Any]) -> None:
    decisions = {method: verdict.decision for method, verdict in verdicts.items()}
    controls = {"controls.null": "passed", "controls.leak": "passed"}
    methods = {"lsa-10": "biased up", "lsa-50": "equivalent", "classic.self_training": "biased down"}
    assert decisions == methods | controls


def test_the_published_report_matches_the_scores(verdicts: dict[str, Any]) -> None:
    report = json.loads((ROOT / "reports" / "published" / "quickstart" / "report.json").read_text())
    published = {verdict["method"]: verdict for verdict in report["verdicts"] if not verdict["control"]}
    assert published.keys() == {"lsa-10", "lsa-50", "classic.self_training"}
    for method, verdict in published.items():
        assert verdict["decision"] == verdicts[method].decision
        assert verdict["estimate"]["mean"] == pytest.approx(verdicts[method].estimate.mean, abs=1e-4)


def test_documented_estimates_match_the_scores(verdicts: dict[str, Any]) -> None:
    estimates = {method: verdict.estimate.mean * 100 for method, verdict in verdicts.items()}
    page = " ".join(QUICKSTART.read_text().split())
    documented = {
        "controls.leak": re.search(r"planted bias is [\d.]+ points, and peekbench measures ([\d.]+)", page),
        "lsa-10": re.search(r"\*\*biased up\*\* by ([\d.]+)", page),
        "classic.self_training": re.search(r"\*\*biased down\*\* by ([\d.]+)", page),
        "lsa-50": re.search(r"\*\*equivalent\*\* on average: -([\d.]+)", page),
    }
    for method, match in documented.items():
        assert match is not None
        assert abs(estimates[method]) == pytest.approx(float(match[1]), abs=0.1)


@pytest.mark.parametrize(("page", "count"), [(ROOT / "README.md", 1), (QUICKSTART, 2)], ids=["README", "quickstart"])
def test_pictures_show_the_methods_of_the_run(verdicts: dict[str, Any], page: Path, count: int) -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+\.svg)\)", page.read_text())
    assert len(pictures) == count
    for picture in pictures:
        text = (page.parent / picture).read_text().replace("&#160;", " ")
        for method in verdicts:
            assert method in text or method.startswith("controls."), "see docs/releasing.md"


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [line.strip() for line in README.splitlines() if line.startswith("    python3 -m venv")]
    assert len(commands) == 2
    assert commands[1] in (ROOT / ".ci" / "run").read_text()
    assert commands[0].endswith("tox run -e quickstart")


def test_the_spec_in_the_readme_is_valid(tmp_path: Path) -> None:
    from peekbench.spec.experiment import parse_spec

    (text,) = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    assert [arm.name for arm in parse_spec(text, folder=tmp_path).arms] == ["base", "extra", "test"]
