"""How the metadata table and partitions of it begin: its properties, and of each file group an
empty log and a base file.

Facts (measured on Hudi 0.15.0): a file group's first log is an empty delete block, of the instant
by which its partition begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import pyarrow as pa

from hudi_table.codec.hfile import write_hfile
from hudi_table.codec.log.rows import delete_block
from hudi_table.codec.metadata.records import encode_metadata, metadata_schema
from hudi_table.metadata.table import context_of
from hudi_table.model.metadata_table import (
    EMPTY_LOG_TOKEN,
    AnyPartition,
    HFileName,
    group_file_id,
    is_building_instant,
    partition_of_shard,
)
from hudi_table.model.names import PARTITION_METADATA, PROPERTIES, LogFileName, join, parse_log_file
from hudi_table.model.table.java_properties import render_properties
from hudi_table.model.table.properties import checksum
from hudi_table.model.table.version_properties import of_metadata_table
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.model.timeline.instants import parse_instant_time
from hudi_table.table.metadata_dropping import notes_in
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Objects
from hudi_table.table.timeline.context import TableContext

Groups = Mapping[str | None, int]
"""How many file groups each data partition has in a record index by partition, or under None a
partition that is not by data partition."""


def begin(ctx: TableContext, partitions: dict[AnyPartition, str], groups: Mapping[AnyPartition, Groups]) -> None:
    """The table itself, and of each partition the first log of its groups: there writers find where
    their logs go, and executors how many groups there are."""
    own = context_of(ctx)
    properties = {
        **of_metadata_table(own.config.version, own.config.name),
        "hoodie.table.checksum": str(checksum("", own.config.name)),
    }
    for partition, instant in partitions.items():
        for of, count in groups[partition].items():
            first_logs(own, partition, instant, of, count)
        retry.put(own.storage, join(partition, PARTITION_METADATA), _partition_metadata(instant))
    # Last, for a folder without them is no table.
    retry.put(own.storage, PROPERTIES, render_properties(properties, ("Hudi table properties",)).encode())


def first_logs(own: TableContext, partition: AnyPartition, instant: str, of: str | None, count: int) -> None:
    """An empty log in each of `count` file groups: there writers find where their logs go."""
    data = delete_block(pa.array([], pa.string()), partition, instant)
    for number in range(count):
        log = LogFileName(group_file_id(partition, number, of), instant, 1, EMPTY_LOG_TOKEN)
        retry.put(own.storage, join(partition, str(log)), data)


def base_files(
    own: TableContext,
    partition: AnyPartition,
    instant: str,
    parts: Iterable[tuple[str, pa.Table]],
    record: str,
    others: Mapping[str, str] = MappingProxyType({}),
) -> list[WriteStat]:
    """The base files of the groups that have entries; a group without any has its log alone, as
    Hudi's have. `record`: the schema of entries; `others`: instants of groups that do not
    begin with this one."""
    stats, schema = [], metadata_schema(record)
    for file_id, rows in parts:
        name = HFileName(file_id, EMPTY_LOG_TOKEN, others.get(file_id, instant))
        data = write_hfile(rows["key"], encode_metadata(rows, schema, file_name=str(name)), schema=schema)
        path = join(partition, str(name))
        retry.put(own.storage, path, data)
        stats.append(
            WriteStat(
                file_id=name.file_id,
                path=path,
                partition_path=partition,
                num_writes=len(rows),
                num_inserts=len(rows),
                total_write_bytes=len(data),
                file_size_in_bytes=len(data),
            )
        )
    return stats


def planned_groups(infos: Objects, partition: AnyPartition, instant: str) -> dict[str | None, int]:
    """With how many file groups the plan of this initial instant began a partition, or of a record
    index by partition each data partition; `infos` is a listing of the metadata table."""
    ids = {name.file_id for name in _logs(infos, partition) if name.base_instant == instant}
    return dict(Counter(map(partition_of_shard, ids)))


def begun_by_others(infos: Objects, partition: AnyPartition, instant: str) -> bool:
    """Whether another plan than that of this initial instant has begun file groups of the
    partition, or a write took them for begun."""
    return any(
        is_building_instant(name.base_instant) and name.base_instant != instant for name in _logs(infos, partition)
    )


def forget_first_logs(own: TableContext, partition: AnyPartition, instant: str) -> None:
    """Delete the first logs of a plan that was not decided. Their names are of this instant alone,
    so it may be done at any time."""
    for info in own.storage.list(partition):
        name = parse_log_file(info.path.rpartition("/")[2])
        if name is not None and name.base_instant == instant and name.token == EMPTY_LOG_TOKEN:
            retry.delete(own.storage, info.path)


def is_whole(infos: Objects) -> bool:
    """Whether a listing shows a metadata table that nobody drops."""
    return not notes_in(infos) and any(info.path == PROPERTIES for info in infos)


def _logs(infos: Objects, partition: AnyPartition) -> Iterator[LogFileName]:
    for info in infos:
        folder, _, name = info.path.rpartition("/")
        found = parse_log_file(name) if folder == partition else None
        if found is not None:
            yield found


def _partition_metadata(instant: str) -> bytes:
    date = parse_instant_time(instant[:17]).strftime("%a %b %d %H:%M:%S %Y")
    return f"#partition metadata\n#{date}\ncommitTime={instant}\npartitionDepth=1\n".encode()
