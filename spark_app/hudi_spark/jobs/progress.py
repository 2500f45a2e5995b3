"""What a job says while it works: one JSON object a line, for whoever follows the file, or the log
of a pod."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Self, TextIO

from hudi_table.model.job.jobspec import JobResult


def _stays(_: JobResult) -> None:
    """Of a job that is no process of its own."""


class Progress:
    """Appends lines to a file; without a path it tells the process's log, beginning with that it
    has begun. `leave` tells a result and ends the process, whatever keeps it."""

    def __init__(self, path: str, leave: Callable[[JobResult], None] = _stays) -> None:
        self._path = path
        self.leave = leave
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path:
            self._file = open(self._path, "a", encoding="utf-8")
        else:
            self._file = sys.stderr
            self.say("the job begins")
        return self

    def __exit__(self, *_: object) -> None:
        if self._path and self._file is not None:
            self._file.close()

    def say(self, message: str) -> None:
        """Tell people what is being done."""
        if self._file is not None:
            self._file.write(json.dumps({"message": message}, ensure_ascii=False) + "\n")
            self._file.flush()
