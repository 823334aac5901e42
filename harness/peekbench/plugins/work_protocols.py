"""Protocols of executors and of the work that they do, and the GPUs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from peekbench.errors import PeekbenchError
from peekbench.plugins.protocols import O_contra
from peekbench.records.runs import Capacity, Host, Resources
from peekbench.records.trials import TrialFailure, TrialResult, WorkItem

COMMAND = "nvidia-smi"
FIELDS = "index,uuid,name,memory.total,memory.used"
TIMEOUT = 30.0  # seconds; the first call after a start of the machine loads the driver
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
MEMORY_UNIT = 2**20


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of this machine."""

    index: str
    """Number by which the driver lists it."""
    uuid: str
    """Identifier, which environment variables name."""
    name: str
    """Name of the model."""
    memory: int
    """Total memory in bytes."""
    used: int = 0
    """Memory that all processes use, in bytes."""


def list_gpus() -> tuple[Gpu, ...] | None:
    """Return the GPUs that this process may use, in its order; None if that is unknown.

    Returns
    -------
    tuple of Gpu or None
        None without `nvidia-smi`, and if `$CUDA_VISIBLE_DEVICES` names parts of a GPU (MIG).

    Raises
    ------
    PeekbenchError
        If `nvidia-smi` fails, or lists something else.

    Examples
    --------
    >>> gpus = list_gpus()
    >>> gpus is None or all(gpu.used <= gpu.memory for gpu in gpus)
    True
    """
    program = shutil.which(COMMAND)
    visible = os.environ.get(VISIBLE_VARIABLE)
    if program is None or "MIG-" in (visible or ""):
        return None
    command = [program, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        detail = (getattr(error, "stdout", "") or getattr(error, "stderr", "") or str(error)).strip()
        raise PeekbenchError(f"{program} cannot list the GPUs of this machine: {detail}") from error
    gpus = [_parse(line) for line in done.stdout.splitlines() if line.strip()]
    if visible is None:
        return tuple(gpus)
    return tuple(_select(gpus, visible))


def _parse(line: str) -> Gpu:
    try:
        index, uuid, name, total, used = (cell.strip() for cell in line.split(","))
        return Gpu(index, uuid, name, int(total) * MEMORY_UNIT, int(used) * MEMORY_UNIT)
    except ValueError:
        raise PeekbenchError(f"{COMMAND} printed {line!r}; expected the fields {FIELDS}, memory in MiB") from None


def _select(gpus: Sequence[Gpu], visible: str) -> Iterator[Gpu]:
    """Iterate over the GPUs that `$CUDA_VISIBLE_DEVICES` names, in its order.

    As in CUDA, the list ends at the first entry that names no GPU. Entries are numbers, or beginnings of identifiers.
    """
    for entry in (part.strip() for part in visible.split(",")):
        found = [gpu for gpu in gpus if entry and (gpu.index == entry or gpu.uuid.startswith(entry))]
        if len(found) != 1:
            return
        yield found[0]


THREADS_VARIABLE = "PEEKBENCH_THREADS"
"""Environment variable in which an executor gives the number of CPU threads that one fit may use.

Examples
--------
>>> import os
>>> environment = {**os.environ, THREADS_VARIABLE: "4"}  # of a process that the executor starts
>>> environment["PEEKBENCH_THREADS"]
'4'
"""

GPU_FRACTION_VARIABLE = "PEEKBENCH_GPU_FRACTION"
"""Environment variable in which an executor gives the share of a GPU's memory that one fit may use.

Examples
--------
>>> environment = {GPU_FRACTION_VARIABLE: "0.25"}  # of one of four processes on a GPU
>>> environment["PEEKBENCH_GPU_FRACTION"]
'0.25'
"""

NODE_VARIABLE = "PEEKBENCH_NODE"
"""Environment variable in which an executor gives the name of a machine, instead of its host name.

Examples
--------
>>> import os
>>> environment = {**os.environ, NODE_VARIABLE: "node-7"}  # of a process that the executor starts
>>> environment["PEEKBENCH_NODE"]
'node-7'
"""

Outcome: TypeAlias = TrialResult | TrialFailure
"""Outcome of a trial.

Examples
--------
>>> from peekbench.records import Draw, Trial, TrialFailure
>>> def has_failed(outcome: Outcome) -> bool:
...     return isinstance(outcome, TrialFailure)
>>> has_failed(TrialFailure(Trial(Draw("tickets", 50, 200, 0), "lsa"), "ValueError: no texts", "Traceback ..."))
True
"""

Event: TypeAlias = Outcome | Host | Capacity
"""What an executor yields: outcomes, and what does the work.

Examples
--------
>>> from peekbench.records import Capacity, Host
>>> def find_hosts(events: list[Event]) -> list[str]:
...     return [event.name for event in events if isinstance(event, Host)]
>>> find_hosts([Capacity(hosts=1, workers=16), Host("node-7")])
['node-7']
"""


class Work(Protocol):
    """The work of a run. An executor sends it, pickled, to processes on any machine, and calls it for each item.

    It limits BLAS and OpenMP to one thread, and its outcomes depend neither on the process nor on the order of items.

    Examples
    --------
    This executor does one item after the other:

    >>> def execute(items, work, *, options):
    ...     for item in items:
    ...         yield list(work(item))
    """

    @property
    def timeout(self) -> float | None:
        """Seconds that a trial may take; None if there is no limit. The executor ends a trial that takes longer."""

    def __call__(self, item: WorkItem) -> Iterator[Outcome]:
        """Load the data and the methods of an item, and return an iterator that runs its trials.

        Parameters
        ----------
        item
            Trials on one draw.

        Yields
        ------
        Outcome
            The outcome of each trial, in the order of the item, once the trial has ended; a `TrialFailure` if a method
            raises an exception.

        Raises
        ------
        PeekbenchError
            If the work cannot go on, because a plugin is missing or data have changed. End the run with this error.
        """

    def prepare(self) -> Host:
        """Prepare a machine other than that of the main process. Call it once per machine, before its first item.

        It imports the plugins, compares their code, the versions of libraries and the data with those of the main
        process, and downloads what the methods need.

        Returns
        -------
        Host
            What the machine is. The executor yields it before the first outcome of this machine.

        Raises
        ------
        PeekbenchError
            If the machine differs from that of the main process, or cannot be prepared. It must not do any work.
        """

    def with_data(self) -> Work:
        """Return this work with the data of its tasks, to send it to machines that may be unable to read them."""

    def needs(self, item: WorkItem) -> Resources:
        """Return the resources that the trials of an item need while they run."""


class Executor(Protocol[O_contra]):
    """Generator that does the work items of a run, in any order and in any process.

    Parameters
    ----------
    items
        Work items, each with one or several trials. Take an item when there is room for it, rather than all at once:
        after each batch of outcomes, the core decides which items remain.
    work
        Function that does one item and yields the outcomes of its trials. It can be pickled.
    options
        Options from the spec. `peekbench run --workers` sets the option `workers`.

    Yields
    ------
    Sequence of Event
        Outcomes of one or several trials, which the core stores at once. To store takes as long as a quick trial, and
        outcomes that are not yielded are lost if the run is killed. Of a trial whose worker crashed, yield a
        `TrialFailure`, at once or after retries: the next run retries it in any case. Only the first outcome of a trial
        counts; a trial without an outcome ends the run with an error. The `Host` of each machine other than that of the
        main process precedes its outcomes, and a `Capacity` tells how many machines and workers there are. An empty
        sequence, about once a second, lets the core report that the work continues. Closing the generator must stop all
        work.
    """

    def __call__(
        self, items: Iterable[WorkItem], work: Work, *, options: O_contra
    ) -> Generator[Sequence[Event], None, None]:
        """Do the work."""
