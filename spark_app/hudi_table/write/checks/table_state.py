"""Checks that need the table's state: what lies pending on it, its partitions, whether an index fits its files."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import islice

import pyarrow as pa

from hudi_table.codec.parquet import read_footer
from hudi_table.errors import InvalidOptionError, InvalidRequestError, ObjectNotFoundError, UnsupportedTableError
from hudi_table.index.base import Index
from hudi_table.index.hashing.bucket import BucketIndex
from hudi_table.index.hashing.consistent import ConsistentIndex
from hudi_table.model.names import METADATA_TABLE, PARTITION_METADATA, PROPERTIES, bucket_of_file_id, join
from hudi_table.model.table.partition_buckets import render_rules
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.undo import TAKEN_BACK, is_decided
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.hashing_config import stored_rules
from hudi_table.table.timeline.properties import drop_metadata_table
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from hudi_table.table.view.hash_rings import RINGS
from hudi_table.table.view.listing import list_data_files, partitions_in

_SERVICES = frozenset({Action.CLUSTERING, Action.INDEXING, Action.RESTORE})
_OURS = frozenset({Action.INDEXING, Action.RESTORE})
"""Those that writers stand beside, or carry out, if the chain has decided them."""
_SAMPLED_FILES = 4


def check_timeline(ctx: TableContext, timeline: Timeline) -> None:
    """Refuse to write beside a pending service of Hudi that moves more than the file groups of its plan.

    Raises UnsupportedTableError that names the instant.
    """
    for instant in timeline.pending:
        if instant.action in _SERVICES and not (instant.action in _OURS and is_decided(ctx, instant)):
            raise UnsupportedTableError(
                f"a {instant.action.value} is pending at {instant.time}; finish it or roll it back, then write again",
                base_path=ctx.base_path,
                instant=instant.time,
            )


def check_renames(ctx: TableContext, timeline: Timeline) -> None:
    """Refuse to write while base files hold columns under former names: a rewrite would take them for new ones.

    Raises UnsupportedTableError that names the columns.
    """
    history = load_column_history(ctx)
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
    """Refuse to drop partitions that are not there. Raises InvalidRequestError that names the nearest one."""
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


def check_index_fits(ctx: TableContext, index: Index, slices: Sequence[FileSlice]) -> None:
    """Refuse an index that options name and the files contradict: other writers would not find our rows.

    Raises InvalidOptionError.
    """
    if isinstance(index, ConsistentIndex):
        for item in islice(slices, _SAMPLED_FILES):
            _check_ring(ctx, index, item)
        return
    if any(info.path for info in ctx.storage.list(RINGS, limit=_SAMPLED_FILES)):
        raise InvalidOptionError(
            "the table's buckets are found by consistent hashing, and the options name another index: other writers would not find our "
            "rows; give hoodie.index.type=BUCKET with hoodie.index.bucket.engine=CONSISTENT_HASHING and its number of buckets",
            base_path=ctx.base_path,
        )
    buckets = [bucket_of_file_id(item.file_id) for item in slices]
    if isinstance(index, BucketIndex):
        for item, bucket in islice(zip(slices, buckets, strict=True), _SAMPLED_FILES):
            _check_bucket(ctx, index, item, bucket)
    elif len(slices) > 1 and all(bucket is not None and bucket < 10_000 for bucket in buckets):
        raise InvalidOptionError(
            f"the options name another index, but file ids such as {slices[0].file_id} are those of a bucket index; "
            "give hoodie.index.type=BUCKET and its number of buckets",
            base_path=ctx.base_path,
        )


def check_partition_buckets(ctx: TableContext, index: Index, timeline: Timeline) -> None:
    """Refuse to write by other numbers of buckets than those that Hudi stored for the partitions. Raises InvalidOptionError."""
    if not isinstance(index, BucketIndex):
        return
    stored = stored_rules(ctx, timeline)
    if stored is not None and stored != (index.rules, index.buckets):
        rules, number = stored
        raise InvalidOptionError(
            f"Hudi gave the table's partitions other numbers of buckets, {render_rules(rules)} and else {number}, than the "
            f"{render_rules(index.rules) or 'same for all'} and else {index.buckets} of this write; set hoodie.bucket.index.partition.expressions "
            "and hoodie.bucket.index.num.buckets accordingly",
            base_path=ctx.base_path,
        )


def drop_metadata_if_any(ctx: TableContext) -> None:
    """Drop Hudi's metadata table before completed commits are taken back: their deltas are not."""
    if not ctx.config.metadata_partitions:
        try:
            ctx.storage.head(f"{METADATA_TABLE}/{PROPERTIES}")
        except ObjectNotFoundError:
            return
    drop_metadata_table(ctx, TAKEN_BACK)


def _check_bucket(ctx: TableContext, index: BucketIndex, item: FileSlice, bucket: int | None) -> None:
    if item.base is None:
        return
    with ctx.storage.open_read(item.base.path) as source:
        footer = read_footer(source, path=item.base.path)
    if footer.min_key is None or footer.max_key is None:
        return
    expected = index.buckets_of(pa.array([footer.min_key, footer.max_key], pa.string()), item.partition).tolist()
    if any(number != bucket for number in expected):
        raise InvalidOptionError(
            f"the options name {index.buckets_in(item.partition)} buckets over {', '.join(index.hash_fields)}, which put key "
            f"{footer.min_key!r} into bucket {expected[0]}, but it lies in file group {item.file_id}; give the number of "
            "buckets and the hash fields that the table was written with",
            base_path=ctx.base_path,
        )


def _check_ring(ctx: TableContext, index: ConsistentIndex, item: FileSlice) -> None:
    ring = index.rings.ring(item.partition)
    if ring.position(item.file_id) is None:
        raise InvalidOptionError(
            f"the options name consistent hashing with {index.rings.buckets} buckets, and file group {item.file_id} of partition "
            f"{item.partition!r} belongs to none of the {len(ring.nodes)} nodes of its ring; give the index that the table was written with",
            base_path=ctx.base_path,
        )
