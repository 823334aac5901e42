"""Mistakes that people make: messages name the place and the remedy in a few lines, and following them leads on.

A mistake in `tests/fixtures/mistakes` has the message's `place` and `remedy`, and in `then` what an obedient user does.
Each step answers the last message (`says`: a part of it) until the command works:

    type        replaces texts of the input by texts that the message prints word for word
    edit        replaces texts of the input as the message describes; an empty text means the end of the input
    write       creates files
    encoding    saves the input in another encoding
    fill        runs the command that the message ends with, with these words for its placeholders
    add         repeats the command with more arguments; the message names the options
    arguments   runs another command

`before` runs first. `needs` is a part of the last message if the command needs what tests lack, such as a network.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
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
PLACEHOLDER = re.compile(r"\b(ARM|MEANING)\b")
MAX_LINES = 6


def message_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command in this process, and return what it prints to the standard error; nothing if it works."""
    capsys.readouterr()
    try:
        app(arguments)
        status: Any = 0
    except PeekbenchError as error:
        echo(describe_error(error, arguments), err=True)
        status = ERROR
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr().err
    assert status in (0, ERROR), printed
    return printed if status else ""


@dataclass
class Attempt:
    """What somebody has written and types."""

    mistake: dict[str, Any]
    arguments: list[str] = field(init=False)
    text: str = field(init=False)
    encoding: str = field(init=False)

    def __post_init__(self) -> None:
        self.arguments = self.mistake.get("arguments", ["validate", "spec.yaml"])
        self.text = self.mistake["input"]
        self.encoding = self.mistake.get("encoding", "utf-8")
        self.write(self.mistake.get("files", {}))

    def write(self, files: dict[str, str]) -> None:
        """Write the input and files beside it."""
        for name, content in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(content, "utf-8")
        Path(self.mistake.get("file", "spec.yaml")).write_bytes(self.text.encode(self.encoding))

    def follow(self, step: dict[str, Any], message: str) -> None:
        """Do what a message says."""
        for before, after in step.get("type", {}).items():
            assert after in message
            self.replace(before, after)
        for before, after in step.get("edit", {}).items():
            self.replace(before, after)
        self.encoding = step.get("encoding", self.encoding)
        self.write(step.get("write", {}))
        if "fill" in step:
            words = iter(step["fill"])
            command = PLACEHOLDER.sub(lambda _: next(words), message.splitlines()[-1].strip())
            assert not list(words)
            self.arguments = shlex.split(command)[1:]
        if "add" in step:
            assert all(word in message for word in step["add"] if word.startswith("--"))
            self.arguments = [*self.arguments, *step["add"]]
        self.arguments = step.get("arguments", self.arguments)

    def replace(self, before: str, after: str) -> None:
        """Replace all occurrences of a text of the input."""
        assert before in self.text
        self.text = self.text.replace(before, after) if before else self.text + after


def follow_remedies(mistake: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield the message of a mistake, and of each attempt to correct it."""
    attempt = Attempt(mistake)
    if "before" in mistake:
        assert not message_of(mistake["before"], capsys)
    yield (message := message_of(attempt.arguments, capsys))
    for step in mistake["then"]:
        assert step.get("says", "") in message
        attempt.follow(step, message)
        yield (message := message_of(attempt.arguments, capsys))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_messages_name_place_and_remedy_and_following_them_leads_to_a_command_that_works(
    mistake: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = follow_remedies(mistake, capsys)
    assert mistake["place"] in first
    assert mistake["remedy"] in first
    for message in (first, *others):
        assert message.count("\n") <= MAX_LINES
    assert all([first, *others[:-1]]), "each step answers a message"
    if "needs" in mistake:
        assert mistake["needs"] in others[-1]
    else:
        assert not others[-1]
