"""`python -m hudi_table.sources.jdbc`: the process that reads MySQL and MariaDB for a run, a
statement after the other as it is asked by its standard input.

Why a process (connectorx 0.4.6; tried): while its stream waits for the server, no other thread of
Python runs, so locks would not be renewed and no signal heard; a panic of the driver writes values
of rows to the log; and a statement that nobody wants any more ends with the process alone.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

from hudi_table.sources.jdbc.frames import ASK, BATCH, END, ERROR, SCHEMA, receive, send


def main() -> int:
    """Answer until nobody asks any more."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the driver prints is no answer
    while (found := receive(source)) is not None:
        assert found[0] == ASK
        try:
            _answer(sink, json.loads(found[1]))
        except BrokenPipeError:
            return 0
        except BaseException as error:  # noqa: BLE001 (a panic of the driver is no Exception)
            send(sink, ERROR, json.dumps([type(error).__name__, str(error)]).encode())
    return 0


def _answer(sink: IO[bytes], asked: dict[str, str]) -> None:
    import connectorx

    reader: Any = connectorx.read_sql(
        asked["url"],
        asked["query"],
        return_type="arrow_stream",
        batch_size=int(asked["rows"]),
        pre_execution_query=json.loads(asked["before"]),
    )
    send(sink, SCHEMA, reader.schema.serialize())
    for batch in reader:
        if batch.num_rows:
            send(sink, BATCH, batch.serialize())
    send(sink, END)


if __name__ == "__main__":
    sys.exit(main())
