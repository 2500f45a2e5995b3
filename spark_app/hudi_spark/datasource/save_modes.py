"""What Spark keeps from sources in Python, handed over as options: the save modes `ignore` and
`errorifexists`, its default, and `partitionBy`.

Facts (pyspark 4.3): Spark lets sources in Python have append and overwrite alone and refuses the
other two before a source hears of them. It refuses `partitionBy` of a batch, since a source in
Python tells of no partitions, and passes over that of a stream. Where `register` has been called,
`save` therefore hands modes over as the option `saveMode` of an append, and columns as the option
`partitionBy`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hudi_spark.datasource.format_options import NO_CATALOG
from hudi_table.errors import InvalidRequestError

NAMES = ("hudi", "org.apache.hudi")
_HANDED_OVER = {
    "ignore": "ignore",
    "errorifexists": "errorifexists",
    "error": "errorifexists",
    "default": "errorifexists",
}
_MARK = "_hands_over_modes"
_PARTITIONS = "_handed_over_partitions"


def hand_over_modes(writer: type[Any]) -> None:
    """Let `save` of a DataFrameWriter class, of classic Spark or of Connect, hand over modes and
    `partitionBy`, and `saveAsTable` raise InvalidRequestError; once."""
    plain: Callable[..., None] = writer.save
    if getattr(plain, _MARK, False):
        return

    partition = hand_over_partitions(writer)

    @functools.wraps(plain)
    def save(
        self: Any, path: str | None = None, format: str | None = None, mode: str | None = None,  # noqa: A002 - Spark's names
        partitionBy: str | list[str] | None = None, **options: Any,  # noqa: N803
    ) -> None:  # fmt: skip
        source, chosen = _source_and_mode(self)
        wanted, ours = (mode or chosen).lower(), (format or source).lower() in NAMES
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        names = getattr(self, _PARTITIONS, [])
        if ours and names:
            partition(self, [])
        if ours and wanted in _HANDED_OVER:
            self.option("saveMode", _HANDED_OVER[wanted])
            self._handed_over, mode = True, "append"
        elif getattr(self, "_handed_over", False):
            # The same writer was used before, with a mode that must not hold for this save.
            self.option("saveMode", wanted)
        try:
            plain(self, path, format, mode, None, **options)
        finally:
            if ours and names:
                # For what else the same writer writes.
                partition(self, names)

    plain_table: Callable[..., None] = writer.saveAsTable

    @functools.wraps(plain_table)
    def save_as_table(self: Any, name: str, format: str | None = None, *args: Any, **more: Any) -> None:  # noqa: A002
        if (format or _source_and_mode(self)[0]).lower() in NAMES:
            raise InvalidRequestError(NO_CATALOG)
        plain_table(self, name, format, *args, **more)

    setattr(save, _MARK, True)
    writer.save, writer.saveAsTable = save, save_as_table


def hand_over_partitions(writer: type[Any]) -> Callable[..., Any]:
    """Let `partitionBy` of a writer class, of batches or streams, hand its columns over as an
    option; returns what it was. Once."""
    plain: Callable[..., Any] = writer.partitionBy
    if hasattr(plain, _MARK):
        return plain

    @functools.wraps(plain)
    def partition_by(self: Any, *columns: Any) -> Any:
        names = columns[0] if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
        setattr(self, _PARTITIONS, [str(name) for name in names])
        self.option("partitionBy", ",".join(str(name) for name in names))
        return plain(self, *columns)

    setattr(partition_by, _MARK, True)
    writer.partitionBy = partition_by
    return plain


def _source_and_mode(writer: Any) -> tuple[str, str]:
    """(source, mode) that a writer was given, `default` where it was given none."""
    plan = getattr(writer, "_write", None)
    if plan is not None:
        return plan.source or "", plan.mode or "default"
    return str(writer._jwrite.source()), str(writer._jwrite.curmode().toString())
