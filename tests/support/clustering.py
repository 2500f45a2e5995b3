"""A clustering as Hudi's: the rows of a partition move to new file groups, meta columns and all,
and nothing changes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudi_table.api import HudiTable
from hudi_table.codec.avro.schema import with_meta
from hudi_table.codec.parquet_writer import BaseFileWriter
from hudi_table.model.names import (
    FILE_NAME,
    BaseFileName,
    MarkerType,
    bucket_file_id,
    bucket_of_file_id,
    join,
    new_file_id,
)
from hudi_table.model.table.config import IndexType
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_table.model.timeline.conflict_keys import partition_conflict_key
from hudi_table.model.timeline.instants import Action
from hudi_table.read.files import stream
from hudi_table.read.plan import Request, ScanPlan, make_plan
from hudi_table.table.commit.transaction import Transaction, begin
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.schemas import table_avro_schema
from hudi_table.table.view.file_system_view import FileSlice


def cluster(table: HudiTable, partition: str) -> str | None:
    """Cluster one partition; its instant, or None if it has no file group. Buckets stay apart."""
    ctx = table.context
    plan = make_plan(ctx, Request(meta=True))
    found = [item for item in plan.slices if item.partition == partition]
    if not found:
        return None
    buckets = ctx.config.index is not None and ctx.config.index.type is IndexType.BUCKET
    groups: dict[int | None, list[FileSlice]] = {}
    for item in found:
        groups.setdefault(bucket_of_file_id(item.file_id) if buckets else None, []).append(item)
    txn = begin(ctx, Action.REPLACE_COMMIT)
    txn.inflight()
    schema = table_avro_schema(ctx, load_timeline(ctx)) or ""
    stats = [_moved(table, txn, replace(plan, slices=tuple(items)), schema, bucket) for bucket, items in groups.items()]
    metadata = CommitMetadata(
        "CLUSTER", tuple(stats), {SCHEMA_KEY: schema}, {partition: tuple(item.file_id for item in found)}
    )
    txn.commit(metadata, [partition_conflict_key(partition)])
    return txn.time


def _moved(table: HudiTable, txn: Transaction, plan: ScanPlan, schema: str, bucket: int | None) -> WriteStat:
    partition = plan.slices[0].partition
    file_id = new_file_id(txn.seed, partition, 0) if bucket is None else bucket_file_id(txn.seed, partition, bucket)
    name = str(BaseFileName(file_id, "0-0-0", txn.time))
    rows = pa.Table.from_batches(list(stream(table.context, plan)), plan.schema)
    position = rows.schema.get_field_index(FILE_NAME)
    rows = rows.set_column(position, FILE_NAME, pa.repeat(pa.scalar(name), len(rows)))
    with txn.right.create_file(partition, name, MarkerType.CREATE) as sink:
        with BaseFileWriter(sink, with_meta(table.schema()), avro_schema=schema) as writer:
            writer.write(rows)
        size = sink.tell()
    return WriteStat(
        file_id, join(partition, name), partition, num_writes=len(rows), num_inserts=len(rows), file_size_in_bytes=size
    )
