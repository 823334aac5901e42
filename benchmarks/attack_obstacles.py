"""Obstacles to writing files: full disks, read-only folders, folders and files in the place of each other.

Full disks and read-only folders are mounts, because permissions do not stop root. They exist only in the mount
namespace of this process and its children.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000  # of Linux's unshare
DISK = "32m"
FILLER = "filler"
ASIDE = ".aside"
"""Ending of files that are moved out of the way, beside their folder."""


@cache
def enter_mount_namespace() -> None:
    """Let this process mount file systems that no other process sees. Root may do so, and other users on most systems.

    Raises
    ------
    OSError
        If the system does not permit it.
    """
    user, group = os.geteuid(), os.getegid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(CLONE_NEWNS if user == 0 else CLONE_NEWNS | CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "no mount namespace: run the attack as root, or allow user namespaces")
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _mount("--make-rprivate", "/")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only."""
    enter_mount_namespace()
    folder.mkdir(parents=True, exist_ok=True)
    _mount("--bind", str(folder), str(folder))
    _mount("-o", "remount,ro,bind", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def full_disk(folder: Path, free: int) -> Iterator[None]:
    """Put a folder on a disk that has some bytes left. The disk has space afterwards, and stays."""
    enter_mount_namespace()
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(folder.name + ASIDE)
    shutil.copytree(folder, aside)
    _mount("-t", "tmpfs", "-o", f"size={DISK}", "none", str(folder))
    shutil.copytree(aside, folder, dirs_exist_ok=True)
    shutil.rmtree(aside)
    with (folder / FILLER).open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            filler.truncate(max(0, filler.tell() - free))
    try:
        yield
    finally:
        (folder / FILLER).unlink()


@contextmanager
def replaced(path: Path, *, by_folder: bool) -> Iterator[None]:
    """Put a folder with a file, or a file, in the place of a path."""
    aside = path.with_name(path.name + ASIDE)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(aside)
    if by_folder:
        path.mkdir()
        (path / "content").touch()
    else:
        path.write_text("a file of the user\n")
    try:
        yield
    finally:
        if by_folder:
            shutil.rmtree(path)
        else:
            path.unlink()
        if aside.exists():
            aside.rename(path)


def unmount_all(folder: Path) -> None:
    """Unmount all disks below a folder."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in reversed(mounts):
        if mount.startswith(f"{folder}/"):
            subprocess.run(["umount", mount], check=True)
