"""Mistakes that people make: messages name the place and the remedy in a few lines, and following them leads on.

A mistake in `tests/fixtures/mistakes` has the message's `place` and `remedy`, and in `then` what an obedient user does.
Each step answers the last message (`says`: a part of it) until the command works:

    type        replaces texts of the input by texts that the message prints word for word
    edit        replaces texts of the input as the message describes; an empty text means the end of the input
    in          the file that is edited, if it is not the input
    write       creates files
    prepare     calls functions of `mistake_files`, as for the mistake itself
    encoding    saves the input in another encoding
    fill        runs the command that the message ends with, with these words for its placeholders
    add         repeats the command with more arguments; the message names the options
    run         runs a command that the message prints word for word
    shell       types a line that the message prints word for word into a shell, then repeats the command
    arguments   runs another command

`before` runs first, and `change` is a step after it.
A file is a text, or has `rows` that are repeated. `library` is an optional library that the command needs.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mistake_files
import pytest
import yaml

from peekbench.cli.app import app
from peekbench.cli.output import ERROR, FAILED, describe_error, echo
from peekbench.errors import PeekbenchError

FOLDER = Path(__file__).parents[1] / "fixtures" / "mistakes"
MISTAKES = [
    pytest.param(mistake, id=f"{file.stem}: {mistake['mistake']}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for mistake in yaml.safe_load(file.read_text("utf-8"))
]
PLACEHOLDER = re.compile(r"\b(ARM|LOG|MEANING)\b")
MAX_LINES = 6
SHELL = {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}


def message_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command in this process, and return its message; nothing if it works."""
    capsys.readouterr()
    try:
        app(arguments)
        status: Any = 0
    except PeekbenchError as error:
        echo(describe_error(error, arguments), err=True)
        status = ERROR
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr()
    assert status in (0, ERROR, FAILED), printed.err
    return (printed.err or printed.out) if status else ""


@dataclass
class Attempt:
    """What somebody has written and types."""

    mistake: dict[str, Any]
    arguments: list[str] = field(init=False)
    texts: dict[str, str] = field(default_factory=dict)
    encoding: str = field(init=False)

    def __post_init__(self) -> None:
        self.arguments = self.mistake.get("arguments", ["validate", "spec.yaml"])
        self.encoding = self.mistake.get("encoding", "utf-8")
        self.file = self.mistake.get("file", "spec.yaml")
        inputs = {self.file: self.mistake["input"]} if "input" in self.mistake else {}
        self.write({**inputs, **self.mistake.get("files", {})})

    def write(self, files: Mapping[str, str | dict[str, Any]]) -> None:
        """Write files; only the input has its own encoding."""
        for name, content in files.items():
            if isinstance(content, dict):
                content = content.get("head", "") + content["rows"] * content["times"]
            self.texts[name] = content
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(content.encode(self.encoding if name == self.file else "utf-8"))

    def follow(self, step: dict[str, Any], message: str) -> None:
        """Do what a message says."""
        file = step.get("in", self.file)
        for before, after in step.get("type", {}).items():
            assert after in message
            self.replace(file, before, after)
        for before, after in step.get("edit", {}).items():
            self.replace(file, before, after)
        self.encoding = step.get("encoding", self.encoding)
        self.write({**({file: self.texts[file]} if file in self.texts else {}), **step.get("write", {})})
        for function, *arguments in step.get("prepare", ()):
            getattr(mistake_files, function)(*arguments)
        if "fill" in step:
            words = iter(step["fill"])
            command = PLACEHOLDER.sub(lambda _: next(words), message.splitlines()[-1].strip())
            assert not list(words)
            self.arguments = shlex.split(command)[1:]
        if "add" in step:
            assert all(word in message for word in step["add"] if word.startswith("--"))
            self.arguments = [*self.arguments, *step["add"]]
        if "run" in step:
            assert step["run"] in message
            self.arguments = shlex.split(step["run"])[1:]
        if "shell" in step:
            assert step["shell"] in message
            subprocess.run(step["shell"], shell=True, check=True, capture_output=True, env=SHELL)
        self.arguments = step.get("arguments", self.arguments)

    def replace(self, file: str, before: str, after: str) -> None:
        """Replace all occurrences of a text of a file."""
        text = self.texts[file]
        assert before in text
        self.texts[file] = text.replace(before, after) if before else text + after


def follow_remedies(mistake: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield the message of a mistake, and of each attempt to correct it."""
    attempt = Attempt(mistake)
    attempt.follow({"prepare": mistake.get("prepare", ())}, "")
    if "before" in mistake:
        assert not message_of(mistake["before"], capsys)
    attempt.follow(mistake.get("change", {}), "")
    yield (message := message_of(attempt.arguments, capsys))
    for step in mistake["then"]:
        assert step.get("says", "") in message
        attempt.follow(step, message)
        yield (message := message_of(attempt.arguments, capsys))


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_messages_name_place_and_remedy_and_following_them_leads_to_a_command_that_works(
    mistake: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    if "library" in mistake and find_spec(mistake["library"]) is None:
        pytest.skip(f"{mistake['library']} is not installed")
    first, *others = follow_remedies(mistake, capsys)
    assert mistake["place"] in first
    assert mistake["remedy"] in first
    for message in (first, *others):
        assert message.count("\n") <= MAX_LINES
    assert all([first, *others[:-1]]), "each step answers a message"
    assert not others[-1]
