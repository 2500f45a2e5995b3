"""Notes which modules of the project a process loads, for `scripts.test_full`, which puts this
folder on PYTHONPATH.

Python imports a module of this name when it starts, in processes that tests start too. Each name is
appended at once, since tests kill processes.
"""

from __future__ import annotations

import os
import sys

NOTES = os.environ.get("HUDI_LOADED_MODULES")
PROJECT = ("hudi_table", "hudi_spark", "hudi_operator")


class Noting:
    """A finder that finds nothing: it sees the name of each module that is loaded for the first
    time."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Appends a name of the project's to the notes."""
        if name.partition(".")[0] in PROJECT and NOTES:
            notes = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(notes, f"{name}\n".encode())
            finally:
                os.close(notes)


if NOTES:
    sys.meta_path.insert(0, Noting)
