"""Checks that need the table's state: what lies pending on it, its partitions."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pyarrow as pa

from hudi_table.errors import InvalidRequestError, ObjectNotFoundError, UnsupportedTableError
from hudi_table.model.names import METADATA_TABLE, PARTITION_METADATA, PROPERTIES, join
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.undo import TAKEN_BACK, is_decided
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import list_data_files, partitions_in
from hudi_table.write.checks.request import Prepared

_SERVICES = frozenset({Action.INDEXING, Action.RESTORE})
"""Which writers stand beside, or carry out, if the chain has decided them."""


def check_timeline(ctx: TableContext, timeline: Timeline) -> None:
    """Refuse to write beside a pending service of Hudi that moves more than the file groups of its
    plan.

    Raises UnsupportedTableError that names the instant.
    """
    for instant in timeline.pending:
        if instant.action in _SERVICES and not is_decided(ctx, instant):
            raise UnsupportedTableError(
                f"{instant.action.value} is pending at {instant.time}: another engine has begun it; finish it or roll it back, then write again",
                base_path=ctx.base_path,
                instant=instant.time,
            )


def check_history(ctx: TableContext, timeline: Timeline) -> bool:
    """Whether Hudi keeps a history of the table's columns. Refuses to write where that would not
    tell what files hold, or where older files hold what rows are found by under former names.

    Raises UnsupportedTableError that names the columns.
    """
    history, config = load_column_history(ctx, timeline), ctx.config
    if history is None:
        return False
    unknown = set((table_schema(ctx, timeline) or pa.schema([])).names) - history.names
    if unknown:
        raise UnsupportedTableError(
            f"Hudi's schema history does not know the columns {', '.join(sorted(unknown))}; let Hudi write once with schema "
            "evolution on, which takes them in, then write again",
            base_path=ctx.base_path,
        )
    needed = (*config.record_key, *config.partition_fields, *config.ordering_fields)
    finding = {name.partition(".")[0] for name in needed}
    for item in FileSystemView(ctx, timeline).latest_slices():
        moved = history.changed_since(item.instant) & finding
        if moved:
            raise UnsupportedTableError(
                f"file group {item.file_id} was written before {', '.join(sorted(moved))} became what rows are found and ordered by; "
                "let Hudi rewrite it (a clustering with schema evolution on), then write again",
                base_path=ctx.base_path,
            )
    return True


def refuse_new_columns(ctx: TableContext, prepared: Prepared) -> None:
    """Refuse to change the columns of a table of which Hudi keeps a history: without ids of their
    own there, they would be taken for others of the same name, or for none."""
    if prepared.changed:
        stored = prepared.stored or pa.schema([])
        new = [field.name for field in prepared.schema if field not in list(stored)]
        raise UnsupportedTableError(
            f"the rows would change the columns {', '.join(new)}, and Hudi keeps a schema history of this table, which tells "
            "columns apart; change them by Hudi (ALTER TABLE with hoodie.schema.on.read.enable=true), then write again",
            base_path=ctx.base_path,
        )


def check_partitions(ctx: TableContext, partitions: Sequence[str]) -> None:
    """Refuse to drop partitions that are not there. Raises InvalidRequestError that names the
    nearest one."""
    if not partitions:
        raise InvalidRequestError("delete_partition needs the paths of the partitions to drop; give partitions=[…]")
    for partition in partitions:
        try:
            ctx.storage.head(join(partition, PARTITION_METADATA))
        except ObjectNotFoundError:
            known = partitions_in(list_data_files(ctx.storage))
            near = difflib.get_close_matches(partition, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}" if near else f"the table has {', '.join(known[:5]) or 'none'}"
            raise InvalidRequestError(f"there is no partition {partition!r}; {hint}", base_path=ctx.base_path) from None


def drop_metadata_if_any(ctx: TableContext) -> None:
    """Drop Hudi's metadata table before completed commits are taken back: their deltas are not."""
    if not ctx.config.metadata_partitions:
        try:
            ctx.storage.head(f"{METADATA_TABLE}/{PROPERTIES}")
        except ObjectNotFoundError:
            return
    drop_metadata_table(ctx, TAKEN_BACK)
