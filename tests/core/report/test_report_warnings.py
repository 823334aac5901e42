"""Warnings of reports about doubtful measurements, in every format and on the terminal."""

from __future__ import annotations

import json
import random
from html import unescape
from pathlib import Path

import pytest
from commands import run_command

SPEC = """
name: doubtful
tasks:
  - {use: files, name: rows, options: {path: rows.csv}}
methods: [toy.vote, controls.null, controls.leak]
design: {num_train: 4, num_test: 40, num_subsamples: 3}
executor: {use: local, options: {in_process: true}}
"""


@pytest.mark.slow
def test_warnings_appear_before_the_run_in_every_format_and_on_the_screen() -> None:
    rng = random.Random(1)
    texts = [" ".join(rng.choices([f"word{number}" for number in range(99)], k=9)) for _ in range(60)]
    rows = [f"{texts[number % 60]},{'ab'[number % 19 == 0]}" for number in range(200)]
    Path("rows.csv").write_text("\n".join(["text,label", *rows]))
    Path("spec.yaml").write_text(SPEC)
    validated = run_command("validate", "spec.yaml")
    assert validated.returncode == 0
    assert "spec.yaml: OK" in validated.stdout
    copies = "Test rows are also extra or train rows: in rows, the copies are 200 of 200"
    assert f"warning: spec.yaml: {copies}" in validated.stderr
    ran = run_command("run", "spec.yaml")
    before, _, _ = ran.stderr.partition("9 of 9 trials")
    assert f"warning: {copies}" in before
    screen = " ".join(ran.stdout.split())
    expected = ("Warning: Accuracy not above the majority class (toy.vote", f"Warning: {copies}")
    assert all(beginning in screen for beginning in expected)
    files = {suffix: Path(f"reports/doubtful/report.{suffix}").read_text() for suffix in ("md", "html", "json")}
    warnings = json.loads(files["json"])["warnings"]
    for beginning in ("Accuracy not above the majority class", copies):
        (warning,) = [warning for warning in warnings if warning.startswith(beginning)]
        for suffix in ("md", "html"):
            assert warning[:40] in " ".join(unescape(files[suffix]).split()), suffix
    ranked = " ".join(run_command("compare", "doubtful").stdout.split())
    assert all(beginning.replace("Warning: ", "Warning: doubtful: ") in ranked for beginning in expected)
