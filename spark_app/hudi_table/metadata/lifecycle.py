"""Before a write: a metadata table that this release keeps is kept, any other one is dropped, or
of one the partitions that are not kept.

A stale one loses rows for every reader that trusts it (measured), so there is nothing between.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence

from hudi_table.errors import CorruptTableError, ObjectNotFoundError, UnsupportedTableError
from hudi_table.metadata.definitions import (
    DEFINITIONS,
    defined_by_users,
    is_noted,
    noted_by_partition,
    noted_expression,
    noted_secondary,
    undefine,
)
from hudi_table.metadata.table import MetadataTable, check_version, context_of, named, read_partitions
from hudi_table.model.metadata_table import MetadataPartition, Partitions, is_defined, is_expression, is_secondary
from hudi_table.model.names import METADATA_TABLE, PROPERTIES, join
from hudi_table.model.table.properties import METADATA_DROPPED, PARTITION_DROPPED
from hudi_table.model.timeline.instants import Action, Instant
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.store import retry
from hudi_table.table.store.ports import has_object
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.timeline.timeline import Timeline

LISTED_WITHIN_SECONDS = 5.0
"""So long after a listing without it nobody asks for it. One that somebody builds after that is
found by the decision, as one built a moment later would be."""
OF_KEYS = frozenset({MetadataPartition.BLOOM_FILTERS, MetadataPartition.RECORD_INDEX})
"""Those that are made of `_hoodie_record_key`."""


class MetadataDroppedWarning(UserWarning):
    """The metadata table was switched off; readers list the folders. Building it again mends it."""


def resolve_metadata_partitions(ctx: TableContext) -> Partitions:
    """Keep it or drop it, as it is. The partitions that a write has to keep."""
    if not ctx.config.metadata_partitions and not _is_there(ctx):
        return Partitions()
    partitions = read_partitions(ctx)
    if not partitions.all:
        # Whoever builds one makes its folder before it is named, under a claim; so without a claim it is named by now, or nobody's.
        if is_built(load_timeline(ctx)):
            return Partitions()
        partitions = read_partitions(ctx)
    why = _why_not(ctx, partitions)
    if why is None:
        partitions = _kept_alone(ctx, partitions)
        if set(partitions.ready) != set(ctx.config.metadata_partitions):
            replace_properties(ctx, {})
        if has_defined(ctx) and is_noted(ctx):
            _forget_stray(ctx, partitions.all)
        return partitions
    drop(ctx, why)
    return Partitions()


def kept(ctx: TableContext) -> frozenset[MetadataPartition]:
    """The partitions that commits of this release write to, but those that somebody has defined."""
    without = set() if ctx.layout.partition_stats else {MetadataPartition.PARTITION_STATS}
    return frozenset(MetadataPartition) - without


def has_defined(ctx: TableContext) -> bool:
    """Whether the table's version has indexes of secondary keys and of expressions: versions 8 and
    9."""
    return ctx.layout.partition_stats


def _strange(ctx: TableContext, names: Collection[str]) -> set[str]:
    """Those of the partitions that no commit writes to: indexes that do not say of which column,
    and of secondary keys those that have no global record index beside them."""
    others = set(names) - kept(ctx)
    if not has_defined(ctx) or not any(map(is_defined, others)):
        return others
    found = {name for name in others if is_expression(name) and noted_expression(ctx, name) is not None}
    if MetadataPartition.RECORD_INDEX in names and not noted_by_partition(ctx):
        found |= {name for name in others if is_secondary(name) and noted_secondary(ctx, name) is not None}
    return others - found


def _kept_alone(ctx: TableContext, partitions: Partitions) -> Partitions:
    """The partitions without those that are not kept, which are dropped: `_strange` ones, and
    statistics that no index of columns defines."""
    strange = _strange(ctx, partitions.all)
    if MetadataPartition.COLUMN_STATS not in partitions.all:
        strange |= {MetadataPartition.PARTITION_STATS} & set(partitions.all)
    if not strange:
        return partitions
    drop_partitions(ctx, strange, "this release does not keep it")
    return read_partitions(ctx)


def drop_partitions(ctx: TableContext, names: Collection[str], why: str | None) -> bool:
    """Drop these partitions alone, and say so, unless somebody wishes it (`why` is None). Whether
    there was one. Their definitions and the properties first, by which
    readers go. What others write there meanwhile stays and counts for nothing: Hudi empties the
    folder of a partition before it builds it anew."""
    found = read_partitions(ctx)
    gone = sorted(set(names) & set(found.all))
    if not gone:
        return False
    said = "" if why is None else f"{PARTITION_DROPPED}{', '.join(gone)}: {why}"
    undefine(ctx, gone)
    replace_properties(ctx, {**named(found.without(gone)), **({METADATA_DROPPED: said} if said else {})})
    for name in gone:
        retry.delete_all(ctx.storage, [info.path for info in ctx.storage.list(join(METADATA_TABLE, name))])
    if said:
        warnings.warn(
            f"of the metadata table of {ctx.base_path} was dropped {said}", MetadataDroppedWarning, stacklevel=2
        )
    return True


def is_built(timeline: Timeline) -> bool:
    """Whether somebody builds partitions of it, or may: a planner's claim does not say of what."""
    return bool(timeline.planner_claims) or any(i.action is Action.INDEXING for i in timeline.pending)


def _forget_stray(ctx: TableContext, there: Collection[str]) -> None:
    """Take the notes of users' indexes back that are not `there` and that nobody builds: of a
    process that ended between the note and its plan. One that was noted lately may be about to be
    planned."""
    stray = defined_by_users(ctx) - set(there)
    if not stray:
        return
    age = (store_now(ctx) - ctx.storage.head(DEFINITIONS).modified).total_seconds()
    if age >= ctx.settings.suspect_after_seconds and not is_built(load_timeline(ctx)):
        # What was built meanwhile is named by now.
        undefine(ctx, stray - set(read_partitions(ctx).all))


def drop(ctx: TableContext, why: str) -> None:
    """Switch it off, and say so."""
    was_ready = bool(read_partitions(ctx).ready)
    if drop_metadata_table(ctx, why) and was_ready:
        warnings.warn(f"the metadata table of {ctx.base_path} was dropped: {why}", MetadataDroppedWarning, stacklevel=2)


def _why_not(ctx: TableContext, partitions: Partitions) -> str | None:
    if not partitions.all:
        return "the table's properties name no partition of it"
    if not ctx.config.populate_meta_fields and OF_KEYS.intersection(partitions.all):
        return "it has an index of record keys, which the table's files do not hold"
    strange = sorted(_strange(ctx, partitions.all))
    if strange and not ctx.layout.partition_stats:
        return f"this release does not keep its partition {', '.join(strange)}"
    try:
        check_version(context_of(ctx))
    except ObjectNotFoundError:
        return "the table's properties name it, and it is not there"
    except (CorruptTableError, UnsupportedTableError) as error:
        return error.message
    return None


def standing(ctx: TableContext, timeline: Timeline) -> MetadataTable | None:
    """What is there to be written to. What is named and is not there, or is named as ready and is
    half-built, is dropped: a drop was not finished, or whoever named it had slept since. So is what
    was not told of a commit: whoever goes by it would lose rows of that. Raises as
    `MetadataTable.load`."""
    table = MetadataTable.load(ctx, timeline)
    if _is_named_wrongly(ctx, table):
        # The listing comes before the properties: what is there now was perhaps built in between.
        table = MetadataTable.load(ctx, timeline)
        if _is_named_wrongly(ctx, table):
            if table is None:
                drop_metadata_table(ctx, None)
            else:
                drop(ctx, f"its partition {', '.join(sorted(table.misnamed))} is named as ready and is half-built")
            return None
    return table if table is None or _is_told(ctx, timeline, table) else None


def _is_told(ctx: TableContext, timeline: Timeline, table: MetadataTable) -> bool:
    """Whether it was told of all commits, and else dropped. Before one is ready nothing is asked of
    it: whoever builds it looks at the end."""
    missing = table.untold(ctx, timeline) if table.partitions.ready else ()
    if missing:
        drop(ctx, not_told_of(missing))
    return not missing


def not_told_of(commits: Sequence[Instant]) -> str:
    """Why a metadata table goes that was not told of these commits of another engine, and what to
    do."""
    more = f" and {len(commits) - 1} more" if len(commits) > 1 else ""
    return (
        f"a writer of another engine that does not keep it committed {commits[0].time}{more}; let all writers keep it "
        "(hoodie.metadata.enable=true, Flink: metadata.enabled=true), or none"
    )


def _is_named_wrongly(ctx: TableContext, table: MetadataTable | None) -> bool:
    return bool(read_partitions(ctx).all) if table is None else bool(table.misnamed)


def is_just_listed_without(ctx: TableContext) -> bool:
    """Whether this process has just listed the timeline, and there was no metadata table."""
    return ctx.no_metadata_at is not None and ctx.clock.boot_seconds() - ctx.no_metadata_at <= LISTED_WITHIN_SECONDS


def _is_there(ctx: TableContext) -> bool:
    return not is_just_listed_without(ctx) and has_object(ctx.storage, f"{METADATA_TABLE}/{PROPERTIES}")
