"""Our side of the interop tests, and what both sides must agree on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.api import create_table, open_table, write_hudi
from tests.interop.model import SCHEMA
from tests.support import hudi_rs
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import ALL_META, META, Rows, assert_same_rows

INDEXES: dict[str, Any] = {
    "bucket": {"type": "Bucket", "buckets": 3},
    "consistent": {"type": "ConsistentBucket", "buckets": 3, "minBuckets": 2, "maxBuckets": 8},
    "by partition": {"type": "Bucket", "buckets": 2, "partitionBuckets": [{"partitions": "^(sf|ny)", "buckets": 5}]},
    "simple": "Simple",
    "global": "GlobalSimple",
    "bloom": "Bloom",
    "global-bloom": "GlobalBloom",
    "record": "RecordIndex",
    "partitioned-record": "PartitionedRecordIndex",
}


def create(base: Path, *, index: str, partitioned: bool, schema: pa.Schema = SCHEMA, **more: Any) -> None:
    """Create a table of ours with the model's columns, of version 6 unless told."""
    options: dict[str, Any] = {"record_key": "id", "ordering_fields": "ts", "version": 6}
    options |= {"partition_by": ["city"] * partitioned}
    create_table(base, schema, **(options | {"index": INDEXES[index]} | more))


def write(base: Path, operation, data: pa.Table, *, options: Mapping[str, str] | None = None) -> None:
    """One write of ours. `delete_partition` drops the partitions of the rows in `data`."""
    if operation == "delete_partition":
        partitioned = bool(open_table(str(base)).context.config.partition_by)
        dropped = sorted(set(data["city"].to_pylist())) if partitioned else [""]
        write_hudi(base, None, operation=operation, partitions=dropped, options=options)
    else:
        write_hudi(base, data, operation=operation, options=options)


def read(base: Path | str, *, meta: bool = False) -> pa.Table:
    """The table's rows as we read them; `meta` adds the meta columns that mean the same in every
    engine."""
    found = open_table(str(base)).scan(meta=meta).to_arrow()
    return found.select([name for name in found.column_names if name not in ALL_META or name in META])


def assert_all_read(
    base: Path,
    oracle: HudiOracle,
    expected: Rows,
    *,
    hudi_sees: Callable[[HudiOracle, pa.Table], pa.Table] | None = None,
    hudi_rs_sees: pa.Table | None = None,
    **options: str,
) -> None:
    """We, hudi-rs and `oracle` read exactly the `expected` rows, and give them the same keys,
    partitions and times.

    `hudi_sees` turns our rows into those that `oracle` shows where it is known to differ,
    `hudi_rs_sees` are those of hudi-rs where it is; `options` are for the oracle's read.
    """
    mine = read(base, meta=True)
    data = [name for name in mine.column_names if name not in META]
    assert_same_rows(mine.select(data), expected, of="ours")
    rs = mine if hudi_rs_sees is None else hudi_rs_sees
    assert_same_rows(hudi_rs.read(base), rs, columns=mine.column_names, of="hudi-rs")
    seen = hudi_sees(oracle, mine) if hudi_sees else mine
    assert_same_rows(oracle.read(base, **options), seen, columns=mine.column_names, of=repr(oracle))
