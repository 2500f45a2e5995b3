"""The data table's files as the metadata table lists them, in place of its folders.

What `files` holds under a timeline is what the timeline's completed instants wrote, and perhaps
later ones, less what completed cleans deleted. So a clean that has not completed sends readers to
the folders: it deletes first and tells last, and an archived replacement hides its files no more.
So does a metadata table that is not ready, cannot be read, was replaced by another one while it was
read, or was not told of the newest commit.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from hudi_table.metadata.prefetch import fetched_ahead
from hudi_table.metadata.reading import listed_files, listed_partitions, read_listing
from hudi_table.metadata.table import UNREADABLE, MetadataTable, identity_in
from hudi_table.model.metadata_table import MetadataPartition, partition_key
from hudi_table.model.names import PROPERTIES
from hudi_table.model.timeline.instants import Action, Instant, comparable_time
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import ListedFile, ListedFiles, TableContext
from hudi_table.table.timeline.timeline import Timeline

_DELETING = frozenset({Action.CLEAN, Action.RESTORE})
"""Actions that delete what `files` still lists until they complete."""


def metadata_files(
    ctx: TableContext, timeline: Timeline, partitions: Collection[str] | None = None
) -> ListedFiles | None:
    """The files of these data partitions, or of all, as of the whole `timeline` (not one cut at a
    moment). None if the folders have to be listed. One read of the partition `files`; of few
    partitions, their entries are looked up in its base file.

    Raises what the storage raises.
    """
    if any(i.action in _DELETING for i in timeline.pending):
        return None
    keys = None if partitions is None else pa.array(sorted(map(partition_key, partitions)), pa.string())
    table = MetadataTable.with_ready(ctx, timeline, MetadataPartition.FILES)
    if table is None or _lacks_newest(ctx, timeline, table.timeline):
        return None
    try:
        listing = read_listing(fetched_ahead(ctx.storage, table, MetadataPartition.FILES), keys)
        if not _is_still_there(table):
            return None
    except UNREADABLE:
        return None
    files = [ListedFile(path, size) for path, size in sorted(listed_files(listing).items())]
    return ListedFiles(files, [] if partitions is not None else listed_partitions(listing))


def _lacks_newest(ctx: TableContext, timeline: Timeline, own: Timeline) -> bool:
    """Whether the metadata table's `own` timeline does not know the newest commit, nor anything
    later, and that wrote files.

    Fact (Hudi 0.15.0, measured): a write that is to build a record index, beside a pending
    compaction, builds none, and puts nothing into the metadata table, which stays as it was.
    """
    newest = timeline.last_commit
    if newest is None or any(i.time == newest.time or _is_later(i, newest) for i in own.completed):
        return False
    return bool(commit_metadata(ctx, newest).paths)


def _is_later(own: Instant, newest: Instant) -> bool:
    if own.completion and newest.completion:
        return own.completion > newest.completion
    return comparable_time(own.time) > comparable_time(newest.time)


def _is_still_there(table: MetadataTable) -> bool:
    """Whether no other one was built in its place since it was listed: then the listing may show
    half of the old one."""
    # Listed again and not asked for by its name: some stores tell whole seconds there, and fractions in listings.
    _, now = table.ctx.storage.list_dir(PROPERTIES.rpartition("/")[0])
    return table.identity is not None and table.identity == identity_in(now)
