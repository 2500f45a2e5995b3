"""pyarrow alone: the least that a Hudi-like layout costs, on one thread, with no timeline and no
protocol.

bulk_insert: one argsort by file and one `take`, meta columns as dictionary constants. upsert: rows
in place. Buckets are the format's; files are plain Parquet. This is the yardstick that `bench.md`
calls the floor.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.rows import read
from bench.settings import BUCKETS, CODEC, KEY, LEVEL, ORDERING, PARTITION
from hudi_table.codec.hashes.javahash import bucket_of

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
DICTIONARIES = [
    "_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name", "l_returnflag", "l_linestatus", "l_shipinstruct",
    "l_shipmode", "l_quantity", "l_discount", "l_tax",
]  # fmt: skip


class Floor:
    """The contender."""

    def bulk_insert(self, rows: Path, base: Path) -> None:
        table = read(rows).combine_chunks()
        order, groups = _grouped(table)
        table = table.take(pa.array(order))
        for (year, bucket), start, stop in groups:
            piece = table.slice(start, stop - start)
            name = f"{year}-{bucket}-0.parquet"
            _write(_with_meta(piece, "001", str(year), name), base / str(year) / name)

    def upsert(self, rows: Path, base: Path) -> None:
        table = read(rows).combine_chunks()
        order, groups = _grouped(table)
        table = table.take(pa.array(order))
        for (year, bucket), start, stop in groups:
            old = base / str(year) / f"{year}-{bucket}-0.parquet"
            name = f"{year}-{bucket}-1.parquet"
            new = _with_meta(table.slice(start, stop - start), "002", str(year), name)
            merged = _merged(pq.ParquetFile(old).read(use_threads=False), new, name)
            _write(merged, base / str(year) / name)
            old.unlink()


def _grouped(table: pa.Table) -> tuple[np.ndarray, list[tuple[tuple[int, int], int, int]]]:
    """The order that brings the rows of each file together, and (year, bucket), start, stop of
    each."""
    years = table.column(PARTITION).to_numpy()
    codes = (years * BUCKETS + bucket_of([table.column(KEY)], BUCKETS)).astype(np.int16)
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    stops = [*starts[1:], len(codes)]
    groups = [
        ((int(code) // BUCKETS, int(code) % BUCKETS), int(start), int(stop))
        for code, start, stop in zip(found, starts, stops, strict=True)
    ]
    return order, groups


def _constant(value: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value]))


def _with_meta(table: pa.Table, instant: str, partition: str, name: str) -> pa.Table:
    rows = len(table)
    seqno = pc.binary_join_element_wise(instant, pa.array(np.arange(rows)).cast(pa.string()), "_")
    meta = [_constant(instant, rows), seqno, table.column(KEY), _constant(partition, rows), _constant(name, rows)]
    return pa.Table.from_arrays([*meta, *table.columns], names=[*META, *table.column_names])


def _merged(old: pa.Table, new: pa.Table, name: str) -> pa.Table:
    """The rows of a file with newer ones in their place."""
    keys = new.column(KEY).combine_chunks()
    found = pc.index_in(old.column(KEY), value_set=keys).combine_chunks()
    rows = np.flatnonzero(np.asarray(found.is_valid()))
    positions = found.drop_null().to_numpy()
    newer = np.asarray(new.column(ORDERING))[positions] >= np.asarray(old.column(ORDERING))[rows]
    take = np.arange(len(old))
    take[rows[newer]] = len(old) + positions[newer]
    unseen = np.ones(len(new), bool)
    unseen[positions] = False
    take = pa.array(np.concatenate([take, len(old) + np.flatnonzero(unseen)]))
    columns = []
    for column in old.column_names:
        if column == "_hoodie_file_name":
            columns.append(_constant(name, len(take)))
            continue
        if column == "_hoodie_partition_path":
            columns.append(_constant(new.column(column)[0].as_py(), len(take)))
            continue
        chunks = [chunk.cast(old.schema.field(column).type) for chunk in new.column(column).chunks]
        columns.append(pa.concat_arrays([*old.column(column).chunks, *chunks]).take(take))
    return pa.Table.from_arrays(columns, names=old.column_names)


def _write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        table, path, compression=CODEC, compression_level=LEVEL, use_dictionary=DICTIONARIES, store_schema=False
    )
