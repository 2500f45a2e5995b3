"""The save modes `ignore` and `errorifexists`, Spark's default, for `format("hudi")`.

Facts (pyspark 4.3): Spark lets sources in Python have append and overwrite alone and refuses the other two before a source
hears of them. Where `register` has been called, `save` therefore hands them over as the option `saveMode` of an append.
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


def hand_over_modes(writer: type[Any]) -> None:
    """Let `save` of a DataFrameWriter class, of classic Spark or of Connect, hand over the modes, and `saveAsTable` raise
    InvalidRequestError; once."""
    plain: Callable[..., None] = writer.save
    if getattr(plain, _MARK, False):
        return

    @functools.wraps(plain)
    def save(
        self: Any, path: str | None = None, format: str | None = None, mode: str | None = None,  # noqa: A002 - Spark's names
        partitionBy: str | list[str] | None = None, **options: Any,  # noqa: N803
    ) -> None:  # fmt: skip
        source, chosen = _source_and_mode(self)
        wanted = (mode or chosen).lower()
        if (format or source).lower() in NAMES and wanted in _HANDED_OVER:
            self.option("saveMode", _HANDED_OVER[wanted])
            self._handed_over, mode = True, "append"
        elif getattr(self, "_handed_over", False):
            # The same writer was used before, with a mode that must not hold for this save.
            self.option("saveMode", wanted)
        plain(self, path, format, mode, partitionBy, **options)

    plain_table: Callable[..., None] = writer.saveAsTable

    @functools.wraps(plain_table)
    def save_as_table(self: Any, name: str, format: str | None = None, *args: Any, **more: Any) -> None:  # noqa: A002
        if (format or _source_and_mode(self)[0]).lower() in NAMES:
            raise InvalidRequestError(NO_CATALOG)
        plain_table(self, name, format, *args, **more)

    setattr(save, _MARK, True)
    writer.save, writer.saveAsTable = save, save_as_table


def _source_and_mode(writer: Any) -> tuple[str, str]:
    """(source, mode) that a writer has been told, `default` where it has not."""
    plan = getattr(writer, "_write", None)
    if plan is not None:
        return plan.source or "", plan.mode or "default"
    return str(writer._jwrite.source()), str(writer._jwrite.curmode().toString())
