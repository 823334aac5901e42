"""Work for the local executor that tells what it finds, or goes wrong."""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any

from peekbench import THREADS_VARIABLE, WorkItem


def look(item: WorkItem) -> Any:
    """What a fit finds: the item, this process, and how many threads it may use."""
    return [(item.trials[0].draw.subsample, os.getpid(), os.environ[THREADS_VARIABLE])]


def dawdle(item: WorkItem) -> Any:
    """As look; one item takes its time."""
    if item.trials[0].draw.subsample == 9:
        time.sleep(1)
    return look(item)


def die_at_9(item: WorkItem) -> Any:
    """As look; one item ends its process."""
    if item.trials[0].draw.subsample == 9:
        os._exit(7)
    return look(item)


def slow_end(item: WorkItem) -> Any:
    """When it was done: the first hundred at once, each further one takes its time."""
    begun = time.monotonic()
    time.sleep(0.4 if item.trials[0].draw.subsample >= 100 else 0)
    return [(item.trials[0].draw.subsample, begun, time.monotonic())]


def fail_at_9(item: WorkItem) -> Any:
    if item.trials[0].draw.subsample == 9:
        raise KeyError("not a method's fault")
    return look(item)


def interrupt_at_9(item: WorkItem) -> Any:
    if item.trials[0].draw.subsample == 9:
        raise KeyboardInterrupt
    return look(item)


def fail(item: WorkItem) -> Any:
    raise KeyError("not a method's fault")


def die(item: WorkItem) -> Any:
    os._exit(7)


class Elsewhere:
    """Work that is there when it is pickled and gone when it is wanted."""

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, ("gone",)

    def __call__(self, item: WorkItem) -> Any:
        return []
