"""Output: text that cannot control the terminal, and outputs that cannot be written."""

from __future__ import annotations

import ast
import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import run_command, shell

import peekbench.cli
from peekbench.formatting import shorten, visible, visible_lines

REPORTS = ["html", "markdown", "json"]
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u200b\x9b31m\ufeff\u2066"


@pytest.fixture
def spec(make_raw: Any) -> str:
    Path("small.yaml").write_text(yaml.safe_dump(make_raw(report={"formats": REPORTS})))
    return "small.yaml"


def files(folder: str) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*.*")}


def is_visible(text: str) -> bool:
    return visible_lines(text) == text


def test_all_hidden_characters_become_escapes() -> None:
    assert visible(HOSTILE).isprintable()
    assert visible_lines("a\tb\nc é \u05d0 \u0627 漢") == "a\tb\nc é \u05d0 \u0627 漢"
    assert visible("\ud800\U000e0041\x00\r\n\t") == r"\ud800\U000e0041\x00\r\n\t"
    assert len(visible(LINES).splitlines()) == 1
    assert shorten("x" * 10**6, 100).startswith("x" * 80 + "[999,900 characters left out]")
    raised = shorten(f"{'a problem ' * 9}(/a/long/path/methods.py,", 80)
    assert raised.endswith("left out](/a/long/path/methods.py,"), "a path keeps its beginning and its end"


LINES = "".join(f"{end}::stop-commands::x" for end in ("a", "\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"))
"""A text with all characters at which programs break lines, and a command to GitHub after each."""


@pytest.mark.slow
def test_a_name_is_one_line_in_each_report(simulate: Any) -> None:
    table = simulate(0.02, tasks=2, subsamples=6)
    table["method"] = "::stop-commands::x " + "y" * 60 + "::stop-commands::x"
    table["task"] = "##[group]" + table["task"]
    table.to_csv("scores.csv", index=False)
    printed = [run_command("analyze", "scores.csv", *options).stdout for options in ((), ("--full",))]
    assert run_command("analyze", "scores.csv", "--reports", "reports", "-q").returncode == 0
    printed += [Path(f"reports/scores/report.{suffix}").read_text() for suffix in ("md",)]
    for text in printed:
        assert "stop-commands::x" in text
    for end in LINES.split("::stop-commands::x")[1:-1]:
        table["method"] = f"a{end}::stop-commands::x"
        table.to_csv("scores.csv", index=False, quoting=csv.QUOTE_ALL)
        done = run_command("analyze", "scores.csv")
        lines = (done.stdout + done.stderr).splitlines()
        assert not [line for line in lines if line.lstrip().startswith("::")], "CI would obey a command"


def test_commands_print_only_through_the_module_output() -> None:
    folder = Path(peekbench.cli.__file__).parent
    for path in folder.glob("*.py"):
        names = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
        assert not names & {"print", "typer.echo", "Console", "sys.stdout.write", "sys.stderr.write"}, path


@pytest.mark.slow
def test_texts_class_names_and_file_names_cannot_control_the_terminal() -> None:
    name = f"{HOSTILE}.yaml"
    Path(name).write_text("name: x")
    validated = run_command("validate", name)
    assert r"\u202egnp.exe" in validated.stderr
    assert is_visible(validated.stderr)
    parsed = shell(f"peekbench run x.yaml '--{HOSTILE}'")
    assert r"\u202egnp.exe" in parsed.stderr, "a message of the parser of the command line"
    assert is_visible(parsed.stderr)


@pytest.mark.slow
def test_failures_are_escaped_and_bounded_in_all_outputs(make_raw: Any) -> None:
    options = {"message": HOSTILE, "length": 3_000_000}
    faulty = make_raw(methods=[{"use": "toy.faulty", "options": options}], report={"formats": REPORTS})
    Path("small.yaml").write_text(yaml.safe_dump(faulty))
    planned = run_command("plan", "small.yaml")
    ran = run_command("run", "small.yaml")
    assert ran.returncode == planned.returncode == 3, ran.stderr
    assert r"\x1b]0;owned" in ran.stdout
    assert r"\x1b]0;owned" in planned.stderr
    for printed in (ran.stdout, ran.stderr, planned.stdout, planned.stderr):
        assert is_visible(printed)
    assert len(ran.stdout) < 100_000
    assert len(planned.stderr) < 20_000
    written = files("reports/small")
    for name in ("report.html", "report.md"):
        assert is_visible(written[name].decode())
        assert len(written[name]) < 1_000_000
    failure = json.loads(written["report.json"])["failures"][0]
    assert 2_000 < len(failure["error"]) < 3_000
    assert HOSTILE in failure["error"], "JSON keeps the characters"
    assert 20_000 < len(failure["traceback"]) < 21_000


@pytest.mark.slow
def test_files_and_status_are_independent_of_the_terminal(spec: str) -> None:
    done = shell("peekbench run small.yaml | head -n 1 > first; exit ${PIPESTATUS[0]}")
    assert done.returncode == 0, done.stderr
    expected = files("reports")
    assert len(expected) == len(REPORTS)
    for command, status in (
        ("PYTHONIOENCODING=ascii:strict peekbench report small", 0),
        ("peekbench report small >&- 2>&- <&-", 0),
        ("peekbench report small > /dev/full", 2),
    ):
        shutil.rmtree("reports")
        done = shell(command)
        assert done.returncode == status, (command, done.stderr)
        assert "Traceback" not in done.stderr
        assert files("reports") == expected
        assert ("No space left on device" in done.stderr) == (status == 2)


def test_protected_streams_accept_all_text() -> None:
    Path("script.py").write_text(
        "import sys\nfrom peekbench.standard_streams import protect_streams\nprotect_streams()\n"
        r"print('\ud800 \u2500', 'x' * 10**6, flush=True); print('\x1b', file=sys.stderr)"
    )
    for output in ("| true; exit ${PIPESTATUS[0]}", ">&-", "> /dev/full"):
        done = shell(f"python script.py {output}", PYTHONIOENCODING="ascii")
        assert (done.returncode, done.stderr) == (0, "\\x1b\n")


def test_output_that_only_prints_has_status_2_if_it_is_lost() -> None:
    assert shell("peekbench --version > /dev/full").returncode == 2
    assert shell("peekbench --version | true; exit ${PIPESTATUS[0]}").returncode == 0


@pytest.mark.slow
def test_a_report_is_printed_if_its_files_cannot_be_written(spec: str) -> None:
    Path("reports").write_text("a file instead of a folder")
    done = run_command("run", spec)
    assert done.returncode == 2
    assert "cannot write reports/small/report.html" in done.stderr
    assert "12 of 12 trials done" in done.stdout
