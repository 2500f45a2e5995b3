"""The operator's log: a line for each message, whatever names and errors of others it holds."""

from __future__ import annotations

import logging

from hudi_operator.api.words import one_line

MESSAGE_LENGTH_MAX = 4096
FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class LineFormatter(logging.Formatter):
    """A message cannot begin a line of its own. Tracebacks, which are ours, keep theirs."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line of a message."""
        return one_line(super().formatMessage(record), MESSAGE_LENGTH_MAX)


def log_to_stderr() -> None:
    """What the process logs from now on, at INFO and above."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
