"""Mistakes that people make: messages name the place and the remedy in a few lines, and their commands work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from peekbench.cli.app import app
from peekbench.cli.output import ERROR, describe_error, echo
from peekbench.errors import PeekbenchError

FOLDER = Path(__file__).parents[1] / "fixtures" / "mistakes"
MISTAKES = [
    pytest.param(mistake, id=f"{file.stem}: {mistake['mistake']}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for mistake in yaml.safe_load(file.read_text("utf-8"))
]
MAX_LINES = 6


def message_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command in this process, and return what it prints to the standard error."""
    try:
        app(arguments)
        status: Any = 0
    except PeekbenchError as error:
        echo(describe_error(error, arguments), err=True)
        status = ERROR
    except SystemExit as ended:
        status = ended.code
    assert status == ERROR
    return capsys.readouterr().err


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_names_the_place_and_the_remedy(
    mistake: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(mistake.get("file", "spec.yaml")).write_bytes(mistake["input"].encode(mistake.get("encoding", "utf-8")))
    for name, content in mistake.get("files", {}).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content, "utf-8")
    message = message_of(mistake.get("arguments", ["validate", "spec.yaml"]), capsys)
    assert mistake["place"] in message
    assert mistake["remedy"] in message
    assert message.count("\n") <= MAX_LINES
    command = message.splitlines()[-1].strip()
    if command.startswith("peekbench ") and not re.search(r"=(ARM|MEANING)\b", command):
        with pytest.raises(SystemExit) as ended:
            app(shlex.split(command)[1:])
        assert ended.value.code == 0
