"""The files of a store: its path, its write-ahead log beside it, and whether they are still the same files.

A store `FILE` has two companions while it is open, and after a kill: `FILE-wal` has the trials that are not in `FILE`
yet, and `FILE-shm` is SQLite's index of it. `FILE.lock` says that a run has the store open.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from peekbench.errors import StoreError

RUNS = Path("runs")
"""Default folder of stores."""


LOCK_SECONDS = 0.2
"""Time to wait for a lock that another process holds for a moment to see whether a run is going on."""

MAGIC = b"SQLite format 3\x00"


def real_path(path: Path) -> Path:
    """Return the absolute path of a store without symbolic links, so that a file has one name.

    Raises
    ------
    StoreError
        If the path is not that of a regular file, or of a file to create.
    OSError
        If the path cannot be looked up.
    """
    if str(path) == ":memory:" or str(path).startswith("file:"):
        raise StoreError(f"store {path}: SQLite's special names are not supported; give the path of a file")
    try:
        resolved = Path(os.path.realpath(path))
        status = resolved.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise StoreError(f"store {path} is a link to {resolved}, which does not exist; remove the link") from None
        return resolved
    except ValueError as error:  # a null character
        raise StoreError(f"store {str(path)!r}: {error}; give the path of a file") from error
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"store {path} is not a regular file; give the path of one")
    return resolved


def is_store(path: Path) -> bool:
    """Return whether the path is a regular file that starts like every SQLite file."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def is_in_use(path: Path) -> bool:
    """Return whether a run has a store open for writing.

    A shared lock, held for microseconds, tells. A run that starts at this moment waits for it (`StoreWriter.for_run`).
    """
    try:
        file = os.open(f"{real_path(path)}.lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # the file system has no locks, so no run can hold one
        return False
    finally:
        os.close(file)  # which releases the lock
    return False


def in_use_error(path: Path) -> StoreError:
    """Return the error of a second run with the same store."""
    return StoreError(f"store {path} is in use by another run; wait for that run, or give this one another name")


def hold_lock(path: Path, file: Path, stack: ExitStack) -> None:
    """Hold the lock of a store until a stack is closed."""
    lock = FileLock(f"{file}.lock", timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        if not Path(lock.lock_file).exists():
            raise StoreError(f"store {path}: no file can be created in {file.parent}; choose another folder") from None
        raise in_use_error(path) from None
    stack.callback(lock.release)


def log_path(path: Path) -> Path:
    """Return the path of a store's write-ahead log."""
    return path.with_name(path.name + "-wal")


def has_log(path: Path) -> bool:
    """Return whether a write-ahead log with content is beside a store.

    Raises
    ------
    StoreError
        If the log is a folder or another kind of file.
    """
    try:
        status = log_path(path).stat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{log_path(path)} is not a regular file; a store's write-ahead log has this name. Remove it")
    return status.st_size > 0


def read_only_uri(file: Path) -> str:
    """Return the URI with which SQLite opens a store to read it."""
    # To read a write-ahead log, SQLite creates a file beside the store. It cannot do so in a read-only folder, and need
    # not if the log is empty.
    if not has_log(file) and not os.access(file.parent, os.W_OK):
        return f"{file.as_uri()}?immutable=1"
    return f"{file.as_uri()}?mode=ro"


def remove_empty_log(file: Path) -> None:
    """Remove the empty write-ahead log and its index, which SQLite creates to read a store.

    SQLite itself removes them when the last connection that may write is closed, so a run that has just started keeps
    its log.
    """
    if log_path(file).exists() and not has_log(file) and os.access(file.parent, os.W_OK):
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()


def refuse_lost_log(path: Path, file: Path) -> None:
    """Refuse a new store where the write-ahead log of another one is left. SQLite would delete it.

    Raises
    ------
    StoreError
        If there is a write-ahead log without a store.
    """
    if has_log(file) and not (file.exists() and file.stat().st_size):
        raise StoreError(
            f"store {path}: its write-ahead log {log_path(file).name} is here, but not the file itself. The log has "
            f"trials that are not in the file yet: move the file back to {file}, or the log beside the file. If you no "
            "longer need these trials, delete the log"
        )


def refuse_foreign_log(path: Path, file: Path) -> None:
    """Refuse a store beside which a write-ahead log was left or copied that does not continue it.

    Raises
    ------
    StoreError
        If the file has another id with its log than without it, or fewer changes.
    """
    if not has_log(file):
        return
    alone = _read_id(file, "immutable=1")
    both = _read_id(file, "mode=ro")
    # A kill during a checkpoint leaves a file that is complete with its log only. The rows are on one page, which is
    # always whole.
    if alone is None or both is None:
        return
    origin = ""
    if both[0] != alone[0]:
        origin = "belongs to another store"
    elif both[1] < alone[1]:
        origin = "is older than the file"
    if origin:
        raise StoreError(
            f"store {path}: the write-ahead log {log_path(file).name} beside it {origin}; move the log away. "
            "Neither was modified"
        )


def _read_id(file: Path, mode: str) -> tuple[str, int] | None:
    """Return the random id of a store and the number of transactions, or None if they are not readable.

    Parameters
    ----------
    file
        The store.
    mode
        "immutable=1" to read the file without its write-ahead log, "mode=ro" to read both.
    """
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?{mode}", uri=True)) as connection:
            values = dict(connection.execute("SELECT key, value FROM run"))
            return values["id"], int(values["transactions"])
    except (sqlite3.Error, UnicodeDecodeError, ValueError, KeyError):
        return None


def identify_files(file: Path) -> tuple[tuple[int, int] | None, ...]:
    """Return device and inode of a store and of its log; None for one that does not exist."""
    return tuple(_identify(part) for part in (file, log_path(file)))


def _identify(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
