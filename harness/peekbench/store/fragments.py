"""Fragments: files to which the jobs of a batch system append their outcomes, until `merge` puts them into a store.

Each attempt of a job has a file of its own, so nothing is locked, and a file system that several machines share is
enough; SQLite needs more. A fragment is a file of JSON Lines. The first line is its header, the others are outcomes and
the hosts that computed them. A job that is killed leaves complete lines, and perhaps a part of one more, which readers
ignore. Each line has a checksum of itself and of the line before, so a changed, lost or foreign line is found.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self

from peekbench.errors import PeekbenchError, StoreError
from peekbench.records.hosts import Host
from peekbench.records.trials import Draw, Trial, TrialFailure, TrialResult
from peekbench.spec.compatibility import Experiment
from peekbench.store.checksums import NONE, SIZE, hash_bytes, shorten
from peekbench.store.outcome_json import outcome_from_json, outcome_to_json, trial_from_json

FORMAT = 1
"""Version of the format of fragments."""
SUFFIX = ".jsonl"
SYNC_SECONDS = 1.0
"""Time after which saved lines are on the disk of the file server."""
_CHECKSUM = b',"checksum":"'
_END = b'"}\n'
_TAIL = len(_CHECKSUM) + 2 * SIZE + len(_END)


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the work items of a spec.

    Examples
    --------
    >>> Shard.parse("3/40")
    Shard(number=3, count=40)
    """

    number: int
    """From 1 to `count`."""
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard of a text such as '3/40'.

        Raises
        ------
        PeekbenchError
            If the text has another form, or there is no such shard.
        """
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
        if match is None:
            raise PeekbenchError(
                f"--shard {shorten(text)}: give the number of the shard and of all shards, such as 3/40"
            )
        number, count = map(int, match.groups())
        if not 1 <= number <= count:
            hint = f"add 1 to numbers that start at 0: {number + 1}/{count}" if number == 0 and count else ""
            raise PeekbenchError(f"--shard {text}: {count} shards have the numbers 1 to {count}; {hint or 'give one'}")
        return cls(number, count)

    def __str__(self) -> str:
        """Return the form that `parse` reads."""
        return f"{self.number}/{self.count}"


@dataclass(frozen=True, slots=True)
class Header:
    """First line of a fragment: the work of the job, and what its numbers depend on."""

    shard: Shard
    experiment: Experiment
    host: str
    """Name of the machine of the job."""
    session: Mapping[str, Any]
    """Provenance, as of a session of a store: versions, machine, code of plugins, facts about methods."""

    def to_json(self) -> dict[str, Any]:
        """Return the header as JSON values."""
        values = {"experiment": asdict(self.experiment), "host": self.host, "session": self.session}
        return {"peekbench_fragment": FORMAT, "shard": str(self.shard), **values}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the header of which `to_json` has returned the values."""
        experiment = Experiment(**values["experiment"])
        return cls(Shard.parse(values["shard"]), experiment, values["host"], values["session"])


class FragmentWriter:
    """A new fragment, to which one job appends.

    It takes the place of the store in a run. It says that no base arm is stored: each fragment has the base arms of all
    of its trials, so it can be read without the others.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._checksum = NONE
        self._last_sync = 0.0
        self._is_synced = True
        self._is_whole = True

    @classmethod
    def create(cls, folder: Path, header: Header) -> Self:
        """Create a fragment in a folder, under a name that no other job uses.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        time_of_start = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        width = len(str(header.shard.count))
        name = f"shard-{header.shard.number:0{width}}-of-{header.shard.count}-{time_of_start}-{secrets.token_hex(4)}"
        path = folder / f"{name}{SUFFIX}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            writer = cls(path, os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o666))
        except OSError as error:
            raise _write_error(path, error) from error
        try:
            writer._append([header.to_json()])
            writer._sync()
            _sync_folder(folder)
        except BaseException:
            writer.close()
            raise
        return writer

    def bases(self) -> set[tuple[Draw, str]]:
        """Return an empty set: base arms of other fragments are fitted again."""
        return set()

    def add_host(self, host: Host) -> None:
        """Append a machine other than that of the job, before its first outcome."""
        self._append([{"machine": asdict(host)}])

    def save(self, *outcomes: TrialResult | TrialFailure) -> None:
        """Append outcomes. Without any, wait for the disk if that was not done in the last second.

        Raises
        ------
        StoreError
            If they cannot be written.
        """
        if outcomes:
            self._append([outcome_to_json(outcome) for outcome in outcomes])
        if not self._is_synced and time.monotonic() - self._last_sync >= SYNC_SECONDS:
            self._sync()

    def close(self) -> None:
        """Wait for the disk and close the file."""
        try:
            if not self._is_synced:
                self._sync()
        finally:
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def _append(self, lines: list[dict[str, Any]]) -> None:
        if not self._is_whole:
            raise StoreError(f"fragment {self.path}: its last line is incomplete, nothing can be added; run again")
        content = bytearray()
        checksum = self._checksum
        for line in lines:
            text = json.dumps(line, separators=(",", ":")).encode("ascii")[:-1]
            checksum = hash_bytes(checksum + text)
            content += text + _CHECKSUM + checksum.hex().encode("ascii") + _END
        self._is_synced = self._is_whole = False
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise _write_error(self.path, error) from error
        self._is_whole = True
        self._checksum = checksum

    def _sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise _write_error(self.path, error) from error
        self._is_synced = True
        self._last_sync = time.monotonic()


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # file systems that cannot do this need not
        pass
    finally:
        os.close(descriptor)


def _write_error(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"fragment {path}: {error.strerror or error}; make the folder writable or free some disk space, then run the "
        "same command again. What was written is kept"
    )


def find_fragments(folder: Path) -> list[Path]:
    """Return the fragments in a folder, or a fragment that is given itself; sorted by name.

    Raises
    ------
    StoreError
        If there is no such folder.
    """
    try:
        if stat.S_ISDIR(folder.stat().st_mode):
            return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}; give a folder of `peekbench worker --out`") from error
    return [folder]


class Fragment:
    """A fragment to read, also while its job appends to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_header(self) -> Header | None:
        """Return the first line; None if it is not complete, because the job has just started or was killed then.

        Raises
        ------
        StoreError
            If the file is not a fragment, or one of another version.
        """
        values = next(self._lines(), None)
        return None if values is None else Header.from_json(values)

    def events(self) -> Iterator[TrialResult | TrialFailure | Host]:
        """Yield the outcomes, and each machine before its first outcome, in the order in which they were written.

        Raises
        ------
        StoreError
            If a line is damaged. A line that is incomplete at the end of the file is ignored, and so are zeros there,
            which the file server has not replaced yet.
        """
        for values in islice(self._lines(), 1, None):
            yield outcome_from_json(values) if "trial" in values else Host(**values["machine"])

    def finished(self) -> Iterator[Trial]:
        """Yield the trials that have not failed; faster than `events`."""
        yield from (trial_from_json(values) for values in islice(self._lines(), 1, None) if "arms" in values)

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            with self.path.open("rb") as file:
                checksum = NONE
                for number, line in enumerate(file, start=1):
                    if not line.endswith(b"\n"):  # a job was killed while it wrote the line, or still writes it
                        return
                    if b"\0" in line:  # what a file server has not received yet, unless it has what follows
                        if any(later.endswith(b"\n") and b"\0" not in later for later in file):
                            raise self._lost(number)
                        return
                    text, tail = line[:-_TAIL], line[-_TAIL:]
                    checksum = hash_bytes(checksum + text)
                    if tail != _CHECKSUM + checksum.hex().encode("ascii") + _END:
                        raise self._damage(number, line)
                    values = json.loads(text + b"}")
                    if number == 1 and values.get("peekbench_fragment") != FORMAT:
                        raise self._damage(number, line)
                    yield values
        except OSError as error:
            raise StoreError(f"fragment {self.path}: {error.strerror or error}; make the file readable") from error

    def _lost(self, number: int) -> StoreError:
        return StoreError(
            f"fragment {self.path}, line {number}: damaged, because it has zero bytes and is not the last one. If its "
            "job was running a minute ago, try again later. Otherwise, restore a copy of the file, or remove the file "
            "and run its shard again"
        )

    def _damage(self, number: int, line: bytes) -> StoreError:
        if number > 1:
            return StoreError(
                f"fragment {self.path}, line {number}: damaged, because it or the line before is not what was written. "
                "Restore a copy of the file, or remove the file and run its shard again"
            )
        version = re.match(rb'\{"peekbench_fragment":(\d+)', line)
        if version and int(version[1]) != FORMAT:
            return StoreError(
                f"fragment {self.path} has version {int(version[1])}, this peekbench reads version {FORMAT}; use the "
                "peekbench that wrote it"
            )
        what = "line 1 is damaged; restore a copy, or remove the file and run its shard again"
        return StoreError(
            f"{self.path} is not a fragment; move it out of the folder" if version is None else f"{self.path}, {what}"
        )
