"""What a commit, a clean or the table as it is says to each partition of the metadata table.

Column statistics are those of base files, from their footers, and of the rows in logs; a file
without any is taken for one that may hold anything (read in public source). Those of a partition
are of the files that a commit wrote alone: entries are put together when they are read. Bloom
filters are those of base files. One whose footer has no bloom filter gets one made of its keys, for
Hudi's index fails where it is missing (read in public source)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_table.codec.avro.schema import with_meta
from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.log.rows import read_rows
from hudi_table.codec.metadata.column_stats import (
    combined,
    has_stats,
    indexed_columns,
    stats_of_file,
    stats_of_nulls,
    stats_of_rows,
)
from hudi_table.codec.metadata.entries import (
    bloom_entry,
    bloom_removal,
    column_stats_entries,
    column_stats_removals,
    partition_stats_entries,
)
from hudi_table.codec.metadata.records import METADATA_SCHEMA
from hudi_table.codec.parquet import read_batches, read_footer
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.metadata.definitions import StatisticsNote, noted_statistics
from hudi_table.metadata.expression_index.entries import removals, values_of_files
from hudi_table.metadata.record_index.delta import locations_of
from hudi_table.metadata.records import (
    Derive,
    Entries,
    UnkeptError,
    entries_of_clean,
    entries_of_commit,
    entries_of_files,
    file_records,
)
from hudi_table.metadata.secondary_index.delta import pairs_of_commit
from hudi_table.metadata.validate import committed_files
from hudi_table.model.metadata_table import AnyPartition, ExpressionPartition, MetadataPartition, SecondaryPartition
from hudi_table.model.names import (
    RECORD_KEY,
    BaseFileName,
    is_skeleton,
    join,
    parse_base_file,
    parse_data_file,
    parse_log_file,
)
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.listing import list_data_files, partitions_in

FOOTERS_AHEAD = 8
_ROWS = (BlockType.AVRO, BlockType.PARQUET)
_File = tuple[str, str]
"""(partition, file name)."""
_Told = tuple[StatisticsNote, Sequence[tuple[_File, pa.StructArray]]]
"""What is noted of statistics, and files with those of their columns."""


def entries_of(ctx: TableContext, metadata: CommitMetadata, time: str, timeline: Timeline) -> Derive:
    """What the commit of the instant `time` says to each partition; its snapshot is `timeline`, its
    files are there."""

    def derive(name: AnyPartition, by_partition: bool) -> Sequence[Entries]:
        if isinstance(name, SecondaryPartition):
            return pairs_of_commit(ctx, name, metadata, time, timeline)
        if isinstance(name, ExpressionPartition):
            return values_of_files(ctx, timeline, name, dict(zip(files, sizes, strict=True)))
        if name is MetadataPartition.FILES:
            return [Entries(file_records(entries_of_commit(metadata)))]
        if name is MetadataPartition.RECORD_INDEX:
            return locations_of(ctx, metadata, time, timeline, by_partition=by_partition)
        return _of_files(ctx, name, files, told)

    files = [(stat.partition_path, stat.path.rpartition("/")[2]) for stat in metadata.stats]
    sizes = [stat.file_size_in_bytes for stat in metadata.stats]
    told = cache(partial(_told, ctx, files))
    return derive


def entries_of_deletion(ctx: TableContext, deleted: Mapping[str, Iterable[str]], dropped: Iterable[str]) -> Derive:
    """What a clean says to each partition: file names by partition that are gone, and partitions
    that are."""
    files = [(partition, name) for partition, names in deleted.items() for name in names]

    def derive(name: AnyPartition, by_partition: bool) -> Sequence[Entries]:
        del by_partition
        if isinstance(name, SecondaryPartition):
            return []
        if isinstance(name, ExpressionPartition):
            return removals(ctx, name, files)
        if name is MetadataPartition.FILES:
            rows = entries_of_clean(deleted, dropped)
            return [Entries(file_records(rows))] if len(rows) else []
        if name in (MetadataPartition.RECORD_INDEX, MetadataPartition.PARTITION_STATS):
            # Bounds of a partition may be wider than what is left of it.
            return []
        if name is MetadataPartition.COLUMN_STATS:
            # An older file may have told of its columns, before the table got one that cannot be told of.
            columns = [field.name for field in stored_schema(ctx, load_timeline(ctx)) if has_stats(field.type)]
            return _joined([column_stats_removals(partition, found, columns) for partition, found in files])
        bases = [(partition, found) for partition, found in files if parse_base_file(found) is not None]
        return _joined([bloom_removal(partition, found, _instant(found)) for partition, found in bases])

    return derive


def entries_of_table(ctx: TableContext, timeline: Timeline) -> Derive:
    """What everything that is committed now says to each partition but the indexes of keys, which
    `record_index.build` and `secondary_index.build` make piece by piece."""
    infos = list_data_files(ctx.storage)
    sizes = committed_files(infos, timeline)

    @cache
    def read_by_name() -> Collection[_File]:
        return _under_todays_names(ctx, timeline, sizes)

    @cache
    def told() -> _Told:
        return _told(ctx, read_by_name())

    def derive(name: AnyPartition, by_partition: bool) -> Sequence[Entries]:
        del by_partition
        if name is MetadataPartition.FILES:
            return [Entries(file_records(entries_of_files(sizes, partitions_in(infos))))]
        if isinstance(name, ExpressionPartition):
            return values_of_files(ctx, timeline, name, sizes)
        if name is MetadataPartition.PARTITION_STATS and len(read_by_name()) < len(sizes):
            raise UnkeptError(name, "columns of the table were renamed or dropped, which its older files do not tell")
        return _of_files(ctx, name, sizes, told)

    return derive


def _under_todays_names(ctx: TableContext, timeline: Timeline, files: Collection[_File]) -> Collection[_File]:
    """These files without those that hold columns under former names, of which statistics would
    tell what another column holds."""
    history = load_column_history(ctx, timeline)
    if history is None:
        return files
    return [file for file in files if not history.changed_since(_begun(file[1]))]


def _begun(name: str) -> str:
    """The instant of a file, or one before all of its blocks."""
    found = parse_data_file(name)
    return "" if found is None else found.instant if isinstance(found, BaseFileName) else found.base_instant


def _of_files(
    ctx: TableContext, name: AnyPartition, files: Iterable[_File], told: Callable[[], _Told]
) -> Sequence[Entries]:
    if name is MetadataPartition.BLOOM_FILTERS:
        bases = [file for file in sorted(set(files)) if parse_base_file(file[1]) is not None]
        return _joined(LocalEngine(FOOTERS_AHEAD).map(partial(_bloom, ctx), bases))
    note, found = told()
    if name is MetadataPartition.COLUMN_STATS:
        return _joined(column_stats_entries(partition, stats) for (partition, _), stats in found)
    return _joined(_of_partitions(found, note))


def _told(ctx: TableContext, files: Iterable[_File]) -> _Told:
    """The statistics of the files that are there and hold rows."""
    known = sorted(set(files))
    bases = [file for file in known if parse_base_file(file[1]) is not None]
    logs = [file for file in known if (log := parse_log_file(file[1])) is not None and not log.cdc]
    note = noted_statistics(ctx)
    found = [
        *zip(bases, LocalEngine(FOOTERS_AHEAD).map(partial(_stats, ctx, note.plain), bases), strict=True),
        *zip(logs, LocalEngine(FOOTERS_AHEAD).map(partial(_log_stats, ctx, note.plain), logs), strict=True),
    ]
    return note, [(file, stats) for file, stats in found if stats is not None]


def _of_partitions(found: Sequence[tuple[_File, pa.StructArray]], note: StatisticsNote) -> Iterable[pa.Table]:
    """The statistics of files put together, partition by partition. A file that has statistics has
    those of all its flat columns; what else the note asks for it has not, and readers see nulls.

    Raises UnkeptError if a file has none at all, or a field of a nested column is asked for.
    """
    by_partition: dict[str, list[pa.StructArray]] = {}
    for (partition, name), stats in found:
        lacks = sorted(note.columns.difference(stats.field("column").to_pylist()))
        unknown = lacks if not len(stats) else [column for column in lacks if "." in column]
        if unknown:
            raise UnkeptError(
                MetadataPartition.PARTITION_STATS,
                f"{join(partition, name)} has no statistics of {', '.join(unknown)}, and those of its partition would leave rows out",
            )
        if lacks:
            stats = pa.concat_arrays(
                [stats, stats_of_nulls(lacks, name, pc.max(stats.field("value_count")).as_py() or 0, plain=note.plain)]
            )
        by_partition.setdefault(partition, []).append(stats)
    for partition, parts in by_partition.items():
        yield partition_stats_entries(partition, _together(parts))


def _together(parts: Sequence[pa.StructArray]) -> pa.StructArray:
    """The statistics of several files or blocks, one for each column."""
    whole = pa.concat_arrays(parts)
    whole = whole.take(pc.sort_indices(whole.field("column")))
    columns = whole.field("column").dictionary_encode().indices.to_numpy()
    return combined(whole, np.flatnonzero(np.diff(columns, prepend=-1)))


def _joined(parts: Iterable[pa.Table]) -> Sequence[Entries]:
    found = [part for part in parts if len(part)]
    return [Entries(pa.concat_tables(found).sort_by("key").combine_chunks())] if found else []


def _stats(ctx: TableContext, plain: bool, file: _File) -> pa.StructArray | None:
    """Those of a base file; None if it was cleaned since it was listed: the clean says so."""
    partition, name = file
    path = join(partition, name)
    try:
        if is_skeleton(path):
            # Statistics of the columns are in another file; a file without any is never left out.
            return None
        with ctx.storage.open_read(path) as source, pq.ParquetFile(source) as found:
            return stats_of_file(found, name, indexed_columns(found.schema_arrow), plain=plain)
    except ObjectNotFoundError:
        return None
    except pa.ArrowInvalid as error:
        raise CorruptTableError(f"{path} has no statistics: {error}", base_path=ctx.base_path, path=path) from error


def _log_stats(ctx: TableContext, plain: bool, file: _File) -> pa.StructArray | None:
    """The same of a log, of the rows of its blocks together; None too if it has none."""
    partition, name = file
    path = join(partition, name)
    parts = []
    try:
        with ctx.storage.open_read(path) as source:
            for block in scan_blocks(source, path=path):
                if block.type in _ROWS:
                    rows = read_rows(source, block)
                    parts.append(stats_of_rows(rows, name, indexed_columns(rows.schema), plain=plain))
    except ObjectNotFoundError:
        return None
    return _together(parts) if len(parts) > 1 else parts[0] if parts else None


def _bloom(ctx: TableContext, file: _File) -> pa.Table:
    partition, name = file
    path = join(partition, name)
    try:
        with ctx.storage.open_read(path) as source:
            footer = read_footer(source, path=path)
        kind, text = footer.bloom_type or "SIMPLE", footer.bloom_text
        if text is None:
            with ctx.storage.open_read(path) as source:
                batches = read_batches(source, [RECORD_KEY], path=path, metadata=footer.metadata)
                made = BloomFilter.from_keys(pa.chunked_array([batch.column(0) for batch in batches], pa.string()))
            kind, text = made.type, made.to_base64()
        return bloom_entry(partition, name, kind, text, _instant(name))
    except ObjectNotFoundError:
        return _nothing()


def _nothing() -> pa.Table:
    return pa.schema([("key", pa.string()), *METADATA_SCHEMA]).empty_table()


def stored_schema(ctx: TableContext, timeline: Timeline) -> pa.Schema:
    """The columns of the table's newest files, meta columns ahead."""
    return with_meta(table_schema(ctx, timeline) or pa.schema([]))


def _instant(name: str) -> str:
    found = parse_base_file(name)
    return found.instant if found else ""
