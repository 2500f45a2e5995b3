"""A table as another writer might have made it, with what ours never writes: no payload class,
other timestamp types."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.hashes.javahash import bucket_ids

INSTANT = "20240101000000000"


def foreign_table(base: Path, rows: pa.Table, *, buckets: int = 2) -> None:
    """A non-partitioned bucket table of `rows`: record key `id`, ordering field `ts`, one
    commit."""
    (base / ".hoodie").mkdir(parents=True)
    properties = {
        "hoodie.table.name": "table",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.precombine.field": "ts",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.populate.meta.fields": "true",
        "hoodie.archivelog.folder": "archived",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(buckets),
        "hoodie.bucket.index.hash.field": "id",
    }
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    (base / ".hoodie" / "hoodie.properties").write_text(text)
    (base / ".hoodie_partition_metadata").write_text(f"commitTime={INSTANT}\npartitionDepth=0\n")
    ids = bucket_ids(rows["id"], buckets, record_key_fields=("id",), hash_fields=("id",), colon_rule="0.15")
    stats = [_file(base, rows.filter(pc.equal(pa.array(ids), int(bucket))), int(bucket)) for bucket in sorted(set(ids))]
    commit = {
        "partitionToWriteStats": {"": stats},
        "compacted": False,
        "extraMetadata": {"schema": arrow_to_avro(rows.schema, table_name="table")},
        "operationType": "INSERT",
    }
    for name in (f"{INSTANT}.commit.requested", f"{INSTANT}.inflight"):
        (base / ".hoodie" / name).write_text("")
    (base / ".hoodie" / f"{INSTANT}.commit").write_text(json.dumps(commit))


def _file(base: Path, rows: pa.Table, bucket: int) -> dict[str, object]:
    """One base file and its write stat."""
    file_id = f"{bucket:08d}-0000-4000-8000-000000000000-0"
    name = f"{file_id}_0-1-0_{INSTANT}.parquet"
    meta = {
        "_hoodie_commit_time": [INSTANT] * rows.num_rows,
        "_hoodie_commit_seqno": [f"{INSTANT}_0_{number}" for number in range(rows.num_rows)],
        "_hoodie_record_key": rows["id"],
        "_hoodie_partition_path": [""] * rows.num_rows,
        "_hoodie_file_name": [name] * rows.num_rows,
    }
    columns = meta | dict(zip(rows.column_names, rows.columns, strict=True))
    pq.write_table(pa.table(columns), base / name, store_schema=False)
    size = (base / name).stat().st_size
    return {
        "fileId": file_id,
        "path": name,
        "prevCommit": "null",
        "numWrites": rows.num_rows,
        "numInserts": rows.num_rows,
        "partitionPath": "",
        "totalWriteBytes": size,
        "fileSizeInBytes": size,
    }
