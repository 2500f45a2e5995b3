"""Which tables several writers may append to at once, without excluding each other: those of Hudi's
non-blocking concurrency control."""

from __future__ import annotations

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.lock_settings import MODE, NON_BLOCKING
from hudi_table.model.table.config import TableConfig, TableType
from hudi_table.model.table.layouts import layout_of


def check_non_blocking(config: TableConfig) -> None:
    """Raise InvalidOptionError for a table whose rows have no place of their own before anybody
    looks, or whose logs do not say when they were completed."""
    is_bucketed = config.index is not None and config.index.type.has_fixed_buckets
    if config.type is not TableType.MERGE_ON_READ or not is_bucketed:
        raise InvalidOptionError(
            f"option {MODE!r}={NON_BLOCKING} needs a merge-on-read table with an index of type Bucket, and table {config.name!r} is none: "
            "leave it out, and writers exclude each other where they meet"
        )
    if not layout_of(config.version).tells_completions:
        raise InvalidOptionError(
            f"option {MODE!r}={NON_BLOCKING} needs table version 8 or 9, and table {config.name!r} has version {config.version}: upgrade it, or "
            "leave the option out"
        )
    if config.cdc is not None:
        raise InvalidOptionError(
            f"option {MODE!r}={NON_BLOCKING} and change data capture do not go together: a writer would have to know what others append"
        )
