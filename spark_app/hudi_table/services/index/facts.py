"""Measures what `advice` judges: footers of a sample of files, and the newest commits. Nothing else
is read.

Of more files than `FILES_SEEN_MAX` some are looked at, the same ones when asked again: evenly
spread, and in runs of neighbours, since how far ranges overlap shows only among files of one
partition. A footer with a default filter takes about 430 KB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from hudi_table.model.names import RECORD_KEY
from hudi_table.model.options.write_options import Operation, WriteOptions
from hudi_table.model.service.index_facts import FileFact, IndexAdvice, IndexFacts, UpsertFact
from hudi_table.model.table.index_changes import exchange_problem
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.services.index.advice import LOOKED_UP, advise
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.file_system_view import BaseFile, FileSystemView

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FILES_SEEN_MAX = 16
COMMITS_SEEN_MAX = 10
_NEIGHBOURS = 4
_LOOKING_UP = frozenset({Operation.UPSERT.hudi_name, Operation.DELETE.hudi_name})


def index_advice(
    view: FileSystemView, engine: Engine | None = None, options: Mapping[str, str] | None = None
) -> IndexAdvice | None:
    """Advice on the index of a table that is written with these options; None if the table stores
    none. Raises CorruptTableError for a broken footer."""
    facts = index_facts(view, engine, options)
    return None if facts is None else advise(facts)


def index_facts(
    view: FileSystemView, engine: Engine | None = None, options: Mapping[str, str] | None = None
) -> IndexFacts | None:
    """Measure a table, opening at most FILES_SEEN_MAX files and COMMITS_SEEN_MAX commits; None if
    it stores no index."""
    ctx = view.ctx
    if ctx.config.index is None:
        return None
    kind = ctx.config.index.type
    slices = view.latest_slices()
    bases = [item.base for item in slices if item.base is not None]
    # Other indexes open no file to find a key, or are there to stay; what is asked of buckets stands in the listing.
    needs_lookups = kind in LOOKED_UP and exchange_problem(ctx.config) is None
    sample = sampled(bases, FILES_SEEN_MAX) if needs_lookups else []
    seen = (engine or LocalEngine()).map(lambda base: _file_fact(ctx, base), sample)
    newest = list(islice(reversed(view.timeline.commits), COMMITS_SEEN_MAX)) if needs_lookups else []
    commits = [commit_metadata(ctx, instant) for instant in newest]
    return IndexFacts(
        index=kind,
        partitioned=bool(ctx.config.partition_by),
        partitions=len({item.partition for item in slices}),
        files=len(bases),
        seen=tuple(seen),
        upserts=tuple(_upsert_fact(commit) for commit in commits if commit.operation_type in _LOOKING_UP),
        bucket_bytes=tuple(item.size for item in slices) if kind.has_fixed_buckets else (),
        target_bytes=WriteOptions.parse(options or {}).target_file_size,
    )


def sampled(files: Sequence[BaseFile], most: int) -> list[BaseFile]:
    """At most so many of the files, in evenly spread runs of `_NEIGHBOURS`."""
    if len(files) <= most:
        return list(files)
    runs = max(1, most // _NEIGHBOURS)
    starts = [number * (len(files) - _NEIGHBOURS) // max(1, runs - 1) for number in range(runs)]
    return [files[at] for at in sorted({start + step for start in starts for step in range(_NEIGHBOURS)})]


def _file_fact(ctx: TableContext, base: BaseFile) -> FileFact:
    # Of an index that looks no file up none is opened: nothing of Parquet is needed to advise on it.
    from hudi_table.codec.parquet import read_footer

    with ctx.storage.open_read(base.path) as source:
        footer = read_footer(source, path=base.path)
    bloom, metadata = footer.bloom(), footer.metadata
    assert metadata is not None
    return FileFact(
        partition=base.partition,
        rows=footer.rows,
        key_bytes=_key_bytes(metadata),
        footer_bytes=metadata.serialized_size,
        smallest=footer.min_key,
        largest=footer.max_key,
        filter_bytes=len(footer.bloom_text or ""),
        fills=() if bloom is None else bloom.fill_ratios(),
        error=1.0 if bloom is None else bloom.false_positive_rate(),
    )


def _key_bytes(metadata: pq.FileMetaData) -> int:
    """Stored size of the key column; of a table that stores no keys, of all columns."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    keys = [chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema == RECORD_KEY]
    return sum(keys or (chunk.total_compressed_size for chunk in chunks))


def _upsert_fact(commit: CommitMetadata) -> UpsertFact:
    """Rows that came in: copied ones count in `num_writes` alone."""
    found = [stat for stat in commit.stats if stat.num_update_writes or stat.num_deletes]
    return UpsertFact(
        rows=sum(stat.num_update_writes + stat.num_deletes + stat.num_inserts for stat in commit.stats),
        files=len({(stat.partition_path, stat.file_id) for stat in found}),
        partitions=len({stat.partition_path for stat in commit.stats}),
    )
