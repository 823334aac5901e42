"""A logbook: a file that gets a line for each run that ends."""

from __future__ import annotations

from pathlib import Path

from peekbench import Folders, Options, hookimpl
from peekbench.plugins import ObserverEntry
from peekbench.records import RunFinished, RunStarted


class Logbook(Options):
    path: Path = Path("logbook.txt")
    """File, relative to the folder of the spec."""


class LogbookObserver:
    def __init__(self, *, options: Logbook, folders: Folders) -> None:
        self.file = folders.spec / options.path

    def run_started(self, event: RunStarted) -> None:
        self.name = event.name

    def run_finished(self, event: RunFinished) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"{self.name}: {event.status}, {event.finished} new trials, {event.failed} failures\n")


@hookimpl
def peekbench_observers() -> list[ObserverEntry]:
    return [ObserverEntry(name="logbook", options=Logbook, observe=LogbookObserver, summary="a line for each run")]
