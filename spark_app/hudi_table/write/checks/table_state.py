"""Checks that need the table's state: what lies pending on it, its partitions."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from hudi_table.errors import InvalidRequestError, ObjectNotFoundError, UnsupportedTableError
from hudi_table.model.names import METADATA_TABLE, PARTITION_METADATA, PROPERTIES, join
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.undo import TAKEN_BACK, is_decided
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import list_data_files, partitions_in

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


def check_renames(ctx: TableContext, timeline: Timeline) -> None:
    """Refuse to write while base files hold columns under former names: a rewrite would take them
    for new ones.

    Raises UnsupportedTableError that names the columns.
    """
    history = load_column_history(ctx, timeline)
    last = timeline.last_commit
    if history is None or last is None:
        return
    for item in FileSystemView(ctx, timeline).latest_slices():
        renamed = [f"{new} (was {old})" for new, old in history.stored_names(item.instant, last.time).items() if old]
        if renamed:
            raise UnsupportedTableError(
                f"file group {item.file_id} was written before columns were renamed: {', '.join(renamed)}; let Hudi rewrite "
                "it (an upsert or a clustering with schema evolution on), then write again",
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
