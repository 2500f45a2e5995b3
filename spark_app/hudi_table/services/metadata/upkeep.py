"""After a write: the metadata table's own compaction, cleaning and archiving, where they are due.

Cheap and inline. Its timeline is short: what is older than its older base files goes to its
archive, in whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from hudi_table.errors import CorruptTableError, HudiError, UnsupportedTableError
from hudi_table.metadata.cleaning import SLICES_KEPT, clean_metadata
from hudi_table.metadata.compaction import DELTAS_MAX, compact_metadata
from hudi_table.metadata.indexing import finish_left
from hudi_table.metadata.lifecycle import drop, kept
from hudi_table.metadata.table import ARCHIVING_LEAVES, MetadataTable
from hudi_table.model.metadata_table import EMPTY_LOG_TOKEN, MetadataPartition, is_defined
from hudi_table.model.options.known import whole_option
from hudi_table.model.timeline.instants import Action, Instant, comparable_time
from hudi_table.services.archiving.kinds import ARCHIVES
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.table.metadata_untold import open_writes
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline

DELTAS = "hoodie.metadata.compact.max.delta.commits"
INSTANTS_MOST = 30
"""Completed instants of its timeline beyond which archiving begins."""


def check_metadata(options: Mapping[str, str]) -> None:
    """Refuse a bad number before anything is written. Raises InvalidOptionError."""
    whole_option(options, DELTAS, least=1)


@relists
def keep_metadata_inline(ctx: TableContext, options: Mapping[str, str]) -> None:
    """What is due after a write. Never fails it: what a store refuses now the next write does, and
    a metadata table that cannot be read is dropped. Raises InvalidOptionError."""
    named = set(ctx.config.metadata_partitions)
    if not named or not {name for name in named if not is_defined(name)} <= kept(ctx):
        return
    deltas = whole_option(options, DELTAS, least=1)
    seen = ctx.metadata_deltas
    if seen is not None and seen < deltas:
        return
    try:
        keep_metadata(ctx, deltas)
    except (CorruptTableError, UnsupportedTableError) as error:
        with suppress(HudiError):
            drop(ctx, error.message)
    except HudiError:
        return


def keep_metadata(ctx: TableContext, deltas: int = DELTAS_MAX) -> None:
    """Compact if `deltas` came, once what holds that is finished; then delete old slices and
    archive old instants. Raises what the storage raises."""
    finish_left(ctx, load_timeline(ctx))
    if compact_metadata(ctx, deltas):
        timeline = load_timeline(ctx)
        table = MetadataTable.load(ctx, timeline) if timeline.has_metadata else None
        if table is not None:
            clean_metadata(table)
            archive_metadata(ctx, table)


def archive_metadata(ctx: TableContext, table: MetadataTable) -> int:
    """Move old instants of its timeline to its archive. Returns how many."""
    leaving = _leaving(ctx, table)
    if not leaving:
        return 0
    states = table.timeline.states()
    keep, merge = ARCHIVES[table.ctx.layout.archive]
    policy = ArchivePolicy.parse({})
    for instants, _ in keep(table.ctx, table.timeline, leaving, policy):
        for instant in instants:
            # Requested and inflight first, so that nothing archived ever looks pending.
            for state in states[instant.time, instant.grouped_action]:
                retry.delete(table.ctx.storage, table.ctx.layout.timeline_path(state.file_name))
    merge(table.ctx, policy)
    return len(leaving)


def _leaving(ctx: TableContext, table: MetadataTable) -> list[Instant]:
    """The oldest completed instants, as long as each is older than the base files that stay, and
    than H. What is left begins before all that it is not told of: what is older is taken for
    told."""
    timeline = table.timeline
    done = [i for i in timeline.completed if i.action is not Action.SAVEPOINT]
    if len(done) <= INSTANTS_MOST:
        return []
    limit = min(_oldest_base(table), _oldest_pending(timeline), _told_before(ctx, table))
    now = store_now(ctx)
    found: list[Instant] = []
    for instant in done[: len(done) - ARCHIVING_LEAVES]:
        age = (now - timeline.files[instant.file_name]).total_seconds()
        if comparable_time(instant.time) >= limit or age <= ctx.settings.quarantine_seconds:
            break
        found.append(instant)
    return found


def _told_before(ctx: TableContext, table: MetadataTable) -> str:
    """The newest of its commits before each write that it is not told of, completed or not: with
    that its timeline goes on to begin before them."""
    data = load_timeline(ctx)
    times = (*open_writes(data), *(i.time for i in table.untold(ctx, data)))
    oldest = min(map(comparable_time, times), default="9" * 24)
    before = [time for i in table.timeline.commits if (time := comparable_time(i.time)) < oldest]
    return max(before, default="9" * 24)


def _oldest_base(table: MetadataTable) -> str:
    """The instant before which every group has as many base files as are kept.

    Shards of a partition that nobody writes to any more are left out while they have no log: they
    would hold the timeline for good, and a base file counts when its instant has left it.
    """
    times = []
    for partition, groups in table.groups.items():
        for group in groups:
            has_entries = any(log.name.token != EMPTY_LOG_TOKEN for log in group.latest.logs)
            if table.by_partition and partition == MetadataPartition.RECORD_INDEX and not has_entries:
                continue
            bases = [item.instant for item in group.slices if item.base is not None]
            times.append(
                bases[-SLICES_KEPT] if len(bases) >= SLICES_KEPT else bases[0] if bases else group.slices[0].instant
            )
    return min((comparable_time(time) for time in times), default="")


def _oldest_pending(timeline: Timeline) -> str:
    return min((comparable_time(i.time) for i in timeline.pending), default="9" * 24)
