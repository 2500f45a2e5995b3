"""Rows that tasks have as Arrow, and the frame of which is only made for what asks Spark: they go
to the tasks that write them as streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame

from hudi_spark.routing.numbering import Numbering


class ArrowRows(Protocol):
    """The rows of a frame."""

    def frame(self, names: Sequence[str]) -> DataFrame | None:
        """These columns alone, None where Spark itself takes no more than it is asked for."""
        ...

    def packed(self, numbering: Numbering, sent: Sequence[str]) -> DataFrame:
        """(task, stream of its rows) with the columns `sent`; see `source_files.packing`."""
        ...
