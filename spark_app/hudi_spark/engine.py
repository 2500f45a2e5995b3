"""`SparkEngine`: independent tasks of `hudi_table` as Spark tasks, over classic Spark and Spark
Connect alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hudi_spark.errors import as_hudi_errors
from hudi_spark.worker import set_up_worker

T = TypeVar("T")
R = TypeVar("R")

_ITEMS = "ordinal int, payload binary"
_BATCH_ITEMS = 1_000


class SparkEngine:
    """Runs a function over items, one Spark task for each item. Functions, items and results are
    pickled."""

    def __init__(self, spark: SparkSession, parallelism: int | None = None) -> None:
        self._spark = spark
        self._parallelism = parallelism or int(spark.conf.get("spark.default.parallelism", "0") or 0) or _cores(spark)

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return self._parallelism

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """`function` of each item, in the order of the items. A failing task fails the call after
        Spark's retries."""
        if not items:
            return []
        rows = [(ordinal, cloudpickle.dumps((function, item))) for ordinal, item in enumerate(items)]
        frame = self._spark.createDataFrame(rows, _ITEMS).repartitionById(len(rows), "ordinal")
        with as_hudi_errors():
            results = {row["ordinal"]: row["payload"] for row in frame.mapInArrow(_run, _ITEMS).collect()}
        return [cloudpickle.loads(bytes(results[ordinal])) for ordinal in range(len(rows))]

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Like `map`, in bounded batches of items."""
        batch: list[T] = []
        for item in items:
            batch.append(item)
            if len(batch) == _BATCH_ITEMS:
                yield from self.map(function, batch)
                batch = []
        yield from self.map(function, batch)


def _run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    set_up_worker()
    for batch in batches:
        for ordinal, payload in zip(batch.column("ordinal").to_pylist(), batch.column("payload"), strict=True):
            function, item = cloudpickle.loads(payload.as_py())
            yield result_batch(ordinal, cloudpickle.dumps(function(item)))


def result_batch(ordinal: int, payload: bytes) -> pa.RecordBatch:
    """One result row as `mapInArrow` returns it; the types must be exact."""
    arrays = [pa.array([ordinal], pa.int32()), pa.array([payload], pa.binary())]
    return pa.record_batch(arrays, names=["ordinal", "payload"])


def collect_results(frame: DataFrame) -> list[tuple[int, object]]:
    """(ordinal, result) rows that tasks returned through `result_batch`."""
    return [(row["ordinal"], cloudpickle.loads(bytes(row["payload"]))) for row in frame.collect()]


def _cores(spark: SparkSession) -> int:
    # Connect sessions have no SparkContext; the shuffle width is then the best known figure.
    try:
        return int(spark.sparkContext.defaultParallelism)
    except (PySparkException, AttributeError):
        return int(spark.conf.get("spark.sql.shuffle.partitions", "2") or 2)
