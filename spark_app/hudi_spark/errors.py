"""Errors of tasks, back as what they were: Spark wraps them, and users react to our names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from hudi_table import errors

_RAISED = re.compile(r"^(?:hudi_table\.errors\.)(?P<name>\w+Error): (?P<message>.+)$", re.MULTILINE)


@contextmanager
def as_hudi_errors() -> Iterator[None]:
    """Raise the `HudiError` that a task raised, with its message; other errors of Spark pass as
    they are."""
    try:
        yield
    except PySparkException as error:
        match = _RAISED.search(str(error))
        kind = getattr(errors, match["name"], None) if match else None
        if match is None or not isinstance(kind, type) or not issubclass(kind, errors.HudiError):
            raise
        raise kind(match["message"]) from error
