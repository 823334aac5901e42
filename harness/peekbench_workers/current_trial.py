"""Tells which trial a worker process is working on, even after a crash, at no cost for a trial.

The worker notes each trial in memory that it shares with the process that started it. A message for each trial would
cost about as much as a quick trial.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time

LAYOUT = struct.Struct("<qqd")  # number of the batch, number of finished trials of it, and start of the next one


class CurrentTrial:
    """Memory with the trial that a worker is working on.

    Parameters
    ----------
    descriptor
        File with the memory, which the worker inherits; None to create one.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            with tempfile.TemporaryFile() as file:
                file.truncate(LAYOUT.size)
                descriptor = os.dup(file.fileno())
        self.descriptor = descriptor
        """File descriptor, for the worker."""
        self._memory = mmap.mmap(descriptor, LAYOUT.size)

    def note(self, batch: int, num_done: int) -> None:
        """Note that a trial starts, after `num_done` trials of the batch have ended."""
        LAYOUT.pack_into(self._memory, 0, batch, num_done, time.monotonic())

    def note_pause(self, batch: int, num_done: int) -> None:
        """Note that no trial is running, for example because data are being loaded."""
        LAYOUT.pack_into(self._memory, 0, batch, num_done, 0.0)

    def read(self, batch: int) -> tuple[int, float]:
        """Return how many trials of a batch have ended, and since when the next one has been running.

        Returns
        -------
        tuple
            Number of trials, 0 if the worker has not started the batch, and the seconds; 0.0 if no trial is running.
        """
        noted, num_done, start = LAYOUT.unpack_from(self._memory)
        if noted != batch:
            return 0, 0.0
        return num_done, time.monotonic() - start if start else 0.0

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()
        os.close(self.descriptor)
