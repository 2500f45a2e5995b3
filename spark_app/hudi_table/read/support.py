"""What this release reads: refusals by name, before any file is opened."""

from __future__ import annotations

from hudi_table.errors import InvalidOptionError, UnsupportedTableError
from hudi_table.model.queries import QUERIES
from hudi_table.model.table.config import TableConfig, TableType
from hudi_table.model.table.version_properties import BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_TYPE, HFILE_INDEX
from hudi_table.table.keys.record_keys import unmade_keys
from hudi_table.table.timeline.context import TableContext

_OLD_HFILE_INDEX = "org.apache.hudi.common.bootstrap.index.HFileBootstrapIndex"
"""An older name of it, by which HFiles of Hudi 0.15.0 still call their comparator (measured)."""


def check_query(query: str, base: str) -> None:
    """Raise InvalidOptionError for a query that a scan does not answer."""
    if query not in QUERIES:
        hint = ": changes(…) gives what each commit did" if query == "cdc" else ""
        raise InvalidOptionError(f"query {query!r} is not one of {', '.join(QUERIES)}{hint}", base_path=base)


def check_readable(ctx: TableContext, query: str = "snapshot") -> None:
    """Raise UnsupportedTableError for a table whose rows this release would get wrong,
    InvalidOptionError for a query."""
    config, base = ctx.config, ctx.base_path
    check_query(query, base)
    if config.later_merge is not None and config.later_merge.refused and _merges(config, query):
        raise UnsupportedTableError(
            f"table {config.name!r} is merge-on-read and merges rows {config.later_merge.refused}, which this release cannot: read its base files "
            "alone (query='read_optimized'), or read it with the engine that wrote it",
            base_path=base,
        )
    if config.nested_ordering and _merges(config, query):
        raise UnsupportedTableError(
            f"table {config.name!r} is merge-on-read and orders rows by {config.nested_ordering!r}, a field of a struct, which this release does not "
            "compare: read its base files alone (query='read_optimized'), or read it with the engine that wrote it",
            base_path=base,
        )
    unmade = unmade_keys(config)
    if unmade is not None and _merges(config, query):
        raise UnsupportedTableError(f"table {config.name!r} cannot be read: it {unmade}", base_path=base)
    for key, plain, what in (
        ("hoodie.table.base.file.format", ("PARQUET",), "base files in another format than Parquet"),
        ("hoodie.table.multiple.base.file.formats.enable", ("FALSE",), "base files in several formats"),
        ("hoodie.datasource.write.drop.partition.columns", ("FALSE",), "partition columns that its files lack"),
        (
            BOOTSTRAP_INDEX,
            (HFILE_INDEX.upper(), _OLD_HFILE_INDEX.upper()),
            "a bootstrap index of another kind than HFile",
        ),
        (BOOTSTRAP_INDEX_TYPE, ("HFILE",), "a bootstrap index of another kind than HFile"),
        ("hoodie.table.format", ("NATIVE",), "a format of another project below Hudi's"),
        ("hoodie.timeline.path", ("TIMELINE",), "its timeline in another folder than .hoodie/timeline"),
    ):
        value = config.extra.get(key, "")
        if value and value.upper() not in plain:
            raise UnsupportedTableError(f"table {config.name!r} has {what} ({key}={value})", base_path=base)


def _merges(config: TableConfig, query: str) -> bool:
    return config.type is TableType.MERGE_ON_READ and query != "read_optimized"
