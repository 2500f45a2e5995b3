"""A small volume in memory, which can be full."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def volume(folder: Path, megabytes: int) -> Iterator[bool]:
    """A volume of its own in `folder`, in memory; whether it could be made, which takes root."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    made = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def filled(folder: Path, free: int) -> Iterator[None]:
    """The volume of `folder` has `free` bytes left, or what others left of them meanwhile."""
    filler = folder / "filler"
    try:
        with filler.open("wb") as file:
            _take(file.fileno(), folder, free)
        yield
    finally:
        filler.unlink()


def _take(descriptor: int, folder: Path, free: int) -> None:
    """In steps, and smaller ones where somebody else took of the room meanwhile."""
    size, step = 0, 64 << 20
    while step >= 4096:
        volume = os.statvfs(folder)
        room = min(step, volume.f_bavail * volume.f_frsize - free)
        if room <= 0:
            return
        try:
            os.posix_fallocate(descriptor, size, room)
            size += room
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            step //= 2
