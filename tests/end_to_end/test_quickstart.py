"""The quickstart: its results match README.md and docs/quickstart.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from peekbench.results.paired_effects import paired_scores
from peekbench.results.table import load_results

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
QUICKSTART = ROOT / "docs" / "quickstart.md"


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder in which the quickstart was run, and its JSON report."""
    folder = tmp_path_factory.mktemp("quickstart")
    command = [sys.executable, "-m", "peekbench", "run", str(ROOT / "specs" / "quickstart.yaml")]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder, json.loads((folder / "reports" / "quickstart" / "report.json").read_text())


@pytest.mark.slow
def test_controls_have_their_known_bias(quickstart: Any) -> None:
    folder, report = quickstart
    wide = paired_scores(load_results(folder / "runs" / "quickstart.sqlite"))
    assert len(wide) == 5 * 5 * 50
    null = wide[wide["method"] == "controls.null"]
    assert (null["bias"] == 0).all()
    assert (null["boost"] == 0).all()
    leak = wide[wide["method"] == "controls.leak"]
    planted = 0.25 * (1 - leak["extra"])
    error = (leak["bias"] - planted).std() / len(leak) ** 0.5
    assert leak["bias"].mean() == pytest.approx(planted.mean(), abs=3 * error)
    metrics = next(table for table in report["tables"] if table["title"].startswith("Means of the metrics"))
    (recorded,) = [row for row in metrics["rows"] if row[:2] == ["controls.leak", "planted_gain"]]
    place = [column["name"] for column in metrics["columns"]].index("test")
    assert recorded[place] == pytest.approx(leak["bias"].mean())


def test_verdicts_match_the_documentation(quickstart: Any) -> None:
    _, report = quickstart
    decisions = {verdict["method"]: verdict["decision"] for verdict in report["verdicts"]}
    assert decisions == {
        "lsa-10": "biased up",
        "lsa-50": "inconclusive",
        "classic.self_training": "biased down",
        "controls.null": "passed",
        "controls.leak": "passed",
    }


def test_documented_estimates_match_the_run(quickstart: Any) -> None:
    """Compare to a tenth of a point, because rounding in linear algebra differs between processors."""
    _, report = quickstart
    estimates = {verdict["method"]: verdict["estimate"] * 100 for verdict in report["verdicts"]}
    page = " ".join(QUICKSTART.read_text().split())
    documented = {
        "controls.leak": re.search(r"planted bias is [\d.]+ points, and peekbench measures ([\d.]+)", page),
        "lsa-10": re.search(r"\*\*biased up\*\* by ([\d.]+)", page),
        "classic.self_training": re.search(r"\*\*biased down\*\* by ([\d.]+)", page),
        "lsa-50": re.search(r"`lsa-50` shows \+([\d.]+)", page),
    }
    for method, match in documented.items():
        assert match is not None
        assert abs(estimates[method]) == pytest.approx(float(match[1]), abs=0.1)


@pytest.mark.parametrize(("page", "count"), [(ROOT / "README.md", 1), (QUICKSTART, 2)], ids=["README", "quickstart"])
def test_pictures_show_the_methods_of_the_run(quickstart: Any, page: Path, count: int) -> None:
    _, report = quickstart
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+\.svg)\)", page.read_text())
    assert len(pictures) == count
    for picture in pictures:
        text = (page.parent / picture).read_text().replace("&#160;", " ")
        for verdict in report["verdicts"]:
            if not verdict["control"]:
                assert verdict["method"] in text, "tox run -e pictures"


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [line.strip() for line in README.splitlines() if line.startswith("    python3 -m venv")]
    assert len(commands) == 2
    assert commands[1] in (ROOT / ".ci" / "run").read_text()
    assert commands[0].endswith("tox run -e quickstart")


def test_the_spec_in_the_readme_is_valid(tmp_path: Path) -> None:
    from peekbench.spec.experiment import parse_spec

    (text,) = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    assert [arm.name for arm in parse_spec(text, folder=tmp_path).arms] == ["base", "extra", "test", "mix-0.25"]
