"""Checks of functions that must return the same at every call, such as data sources, analyses and audits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from peekbench.errors import ContractError, PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import Entry
from peekbench.testing.attempt import Attempt
from peekbench.testing.fresh_process import Answer, Surroundings, call
from peekbench.testing.packages import own_packages
from peekbench.testing.random_state import GENERATORS, SEEDS, call_with_seed

MAX_FILES = 3  # names in a message
EntryT = TypeVar("EntryT", bound=Entry)


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """A call of a plugin's function, described by a text, which must be the same for every call."""

    use: str
    """Name of the entry in specs."""
    callee: object
    """Function of the plugin."""
    describe: Callable[..., str]
    """Function at the top level of a module that calls the plugin's function, and describes the result by a text."""
    arguments: tuple[Any, ...]
    """Arguments of `describe`, which can be pickled."""
    remedy: str
    """How to make it the same at every call."""
    shared: dict[str, Attempt] = field(default_factory=dict, repr=False, compare=False)
    """Results that several checks use."""

    def first(self) -> str:
        """Describe the result of the first call; the function is called once."""
        return str(self._share("first", lambda: self.describe(*self.arguments)))

    def seeded(self) -> str:
        """Describe the result of a call with another state of the global generators; the function is called once."""
        return str(self._share("seeded", partial(call_with_seed, SEEDS[0], partial(self.describe, *self.arguments))))

    def elsewhere(self) -> Answer:
        """Describe the result in a new process; the function is called once."""
        surroundings = Surroundings(own_packages=own_packages(self.use, self.callee))
        answer: Answer = self._share("elsewhere", partial(call, surroundings, self.describe, *self.arguments))
        return answer

    def _share(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self.shared:
            self.shared[name] = Attempt(compute)
        return self.shared[name].result()


def check_second_call(subject: RepeatedCall) -> None:
    """Check that the second call returns the same."""
    first = subject.first()
    with suppress(ContractError):  # another check reports a change of the generators
        if subject.seeded() == first:
            return
    if subject.describe(*subject.arguments) != first:
        raise ContractError(f"the second call gives another result; {subject.remedy}")


def check_generators(subject: RepeatedCall) -> None:
    """Check that the function neither uses nor changes the global random generators."""
    first = subject.first()
    if subject.seeded() != first and subject.describe(*subject.arguments) == first:
        raise ContractError(f"the result depends on the state of {GENERATORS}; {subject.remedy}")


def check_new_process(subject: RepeatedCall) -> None:
    """Check that a new process, with other hashes of texts, another id and another time, gives the same result."""
    first, answer = subject.first(), subject.elsewhere()
    if answer.error:
        raise ContractError(f"in another process, {answer.error}")
    if answer.value != first:
        raise ContractError(
            "another process gives another result; do not use `hash`, the order of a set, the process id or the time; "
            f"{subject.remedy}"
        )


def check_state(subject: RepeatedCall) -> None:
    """Check that the function leaves the state of its process unchanged, and no thread or process behind."""
    require_unchanged_state(subject.elsewhere())


def require_unchanged_state(answer: Answer) -> None:
    """Refuse what a function changed in a new process."""
    if answer.changes:
        raise ContractError(
            f"it changes the state of the process, on which other plugins may depend: {'; '.join(answer.changes)}; "
            "restore it, for example in a `finally` block"
        )
    if answer.left_behind:
        raise ContractError(f"it leaves running: {', '.join(answer.left_behind)}; end them before it returns")
    if answer.files:
        others = f" and {len(answer.files) - MAX_FILES} more" if len(answer.files) > MAX_FILES else ""
        raise ContractError(
            f"it leaves in the working folder: {', '.join(answer.files[:MAX_FILES])}{others}; write files to a "
            "temporary folder or, if they serve later calls, to the cache"
        )


def by_name(use: str, entry: EntryT) -> EntryT | None:
    """Return None if another process finds an entry by its name, otherwise the entry."""
    try:
        return None if registry.find(use, type(entry)) is entry else entry
    except PluginError:
        return entry
