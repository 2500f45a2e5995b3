"""The process that reads MySQL and MariaDB, of the run that asks it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_table.sources.jdbc.frames import ASK, BATCH, ERROR, SCHEMA, receive, send


class DriverError(Exception):
    """What the driver has raised there: the name of its class, and its words."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(words)
        self.name = name


@dataclass(slots=True)
class Reader:
    """One process. A statement is answered before the next one is asked; one whose answer is not
    wanted any more ends with the process."""

    url: str = field(repr=False)
    before: Sequence[str]
    _process: subprocess.Popen[bytes] | None = None
    _busy: bool = False

    def ask(self, query: str, rows: int) -> Iterator[pa.RecordBatch | pa.Schema]:
        """The schema of an answer, then its batches of at most so many rows. Raises DriverError."""
        if self._busy:
            self.close()
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {"url": self.url, "query": query, "rows": str(rows), "before": json.dumps(list(self.before))}
        self._busy = True
        with contextlib.suppress(OSError):  # it has ended, which is told below
            send(process.stdin, ASK, json.dumps(asked).encode())
        schema = None
        while True:
            found = receive(process.stdout)
            if found is None:
                self.close()
                raise DriverError("EOFError", "the process that reads has ended")
            kind, payload = found
            if kind == SCHEMA:
                schema = pa.ipc.read_schema(pa.py_buffer(payload))
                yield schema
            elif kind == BATCH:
                yield pa.ipc.read_record_batch(pa.py_buffer(payload), schema)
            else:
                self._busy = False
                if kind == ERROR:
                    name, words = json.loads(payload)
                    raise DriverError(name, words)
                return

    def close(self) -> None:
        """End it, whatever it does."""
        process, self._process, self._busy = self._process, None, False
        if process is not None:
            process.kill()
            process.communicate()  # which also waits for its end

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # What a panic writes to the log holds values of rows.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "hudi_table.sources.jdbc"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "RUST_BACKTRACE": "0"},
            )
        return self._process
