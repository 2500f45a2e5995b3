"""What tasks of Spark keep of their parts: rows as Arrow streams, and what they say of them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_spark.jobs.ingest_spark import in_spark_types
from hudi_spark.worker import set_up_worker
from hudi_table.codec.conform import conform

KEPT = "ordinal int, told binary, data binary"
"""Of what tasks keep: their part's number, and what they say of it or, each in a row, its data."""
Batches = Iterator[pa.RecordBatch]


def entries(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any, Sequence[pa.RecordBatch]]]:
    """(number of the range, what a task says of it, its data) of what is kept, part by part: of the
    two one is there."""
    for batch in batches:
        for ordinal, told, data in zip(
            batch.column("ordinal").to_pylist(), batch.column("told").to_pylist(), batch.column("data"), strict=True
        ):
            if told is not None:
                yield ordinal, pickle.loads(told), ()  # noqa: S301 - of our own tasks, see tests/tidy/test_dangers.py
            else:
                with pa.ipc.open_stream(data.as_buffer()) as stream:
                    yield ordinal, None, list(stream)


def packet(ordinal: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Data of a part, as tasks keep it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return answer(ordinal, None, sink.getvalue().to_pybytes())


def answer(ordinal: int, told: bytes | None, data: bytes | None) -> pa.RecordBatch:
    """A row of what tasks keep."""
    arrays = [pa.array([ordinal], pa.int32()), pa.array([told], pa.binary()), pa.array([data], pa.binary())]
    return pa.record_batch(arrays, names=["ordinal", "told", "data"])


def told_of(frame: DataFrame) -> dict[int, Any]:
    """What tasks say, by the number of their range."""
    answers = frame.select("ordinal", "told").where("told is not null").collect()
    return {row["ordinal"]: pickle.loads(row["told"]) for row in answers}  # noqa: S301 - of our own tasks, see tests/tidy/test_dangers.py


def frame_of(made: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows that tasks have kept, in Spark's types."""
    spark_schema, target = in_spark_types(schema)

    def rows(batches: Batches) -> Batches:
        set_up_worker()
        for _, _, found in entries(batches):
            for each in found:
                yield conform(each, target)

    return made.where("data is not null").mapInArrow(rows, spark_schema)
