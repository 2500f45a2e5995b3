"""Bloom filters of the files that a table service writes: it takes none away that a writer put
there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from hudi_table.codec.parquet import read_footer
from hudi_table.errors import InvalidOptionError, ObjectNotFoundError
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.table.config import IndexType
from hudi_table.model.table.index_properties import INDEX_NAMES, INDEX_TYPE
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.compaction_plans import PlannedSlice

FOOTERS_MAX = 4
"""Footers that are read to learn whether files have filters: one writer gives them to all of its
files."""


def options_of_rewrite(ctx: TableContext, options: Mapping[str, str], slices: Iterable[PlannedSlice]) -> WriteOptions:
    """The options of a service that rewrites `slices`: with filters if an index that it is given by
    `hoodie.index.type` needs them, or if files have some, unless
    `hoodie.parquet.bloom.filter.enabled` says what they get.

    Raises InvalidOptionError and CorruptTableError.
    """
    parsed = WriteOptions.parse(options)
    if parsed.bloom_enabled is not None or ctx.config.needs_filters:
        return parsed
    wanted = _needs_filters(options.get(INDEX_TYPE)) or _have_filters(ctx, slices)
    return replace(parsed, bloom_enabled=True) if wanted else parsed


def _needs_filters(index: str | None) -> bool:
    if index is None:
        return False
    try:
        return IndexType.named(index).needs_filters
    except KeyError:
        raise InvalidOptionError(f"option {INDEX_TYPE}: {index!r} is none of {', '.join(INDEX_NAMES)}") from None


def _have_filters(ctx: TableContext, slices: Iterable[PlannedSlice]) -> bool:
    def has_filter(path: str) -> bool:
        try:
            with ctx.storage.open_read(path) as source:
                return read_footer(source, path=path).bloom_text is not None
        except ObjectNotFoundError:
            # Gone: whoever reads it for its rows says what that means.
            return False

    paths = [item.base_path for item in slices if item.base_path is not None]
    return any(all_at_once(ctx.storage, [partial(has_filter, path) for path in paths[:FOOTERS_MAX]]))
