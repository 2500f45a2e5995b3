"""`INSERT INTO` and `df.write.format("hudi")`: a few rows through Spark's data source interface.

A data source gets its rows as Spark happens to hold them and cannot ask for those of one file group together. So the tasks
hand their rows to the driver's side, which commits them as one write: for what a person types, up to `LIMIT` bytes of
Arrow data. More belongs into `hudi_spark.write`, and is refused with that advice before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hudi_table.api import HudiTable
from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidRequestError

LIMIT = 64 * 1024 * 1024
_ADVICE = "hudi_spark.write(df, table, operation) takes any number of rows"
_NARROWING = ("columns", "filter", "asof", "query", "meta")


@dataclass
class Rows(ds.WriterCommitMessage):
    """The rows of one task, as an Arrow stream."""

    stream: bytes


class SmallWriter(ds.DataSourceArrowWriter):
    """Commits the rows of all tasks at once. Options: `operation` (upsert), `batch`, and keys `hoodie.…`.

    Raises InvalidRequestError for a source that shows a part of the table, and for an overwrite that does not say of what.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool, table: HudiTable) -> None:
        narrowed = [name for name in _NARROWING if name in {key.lower() for key in options}]
        if narrowed:
            raise InvalidRequestError(f"the option {narrowed[0]} makes this a view of a part: write without it")
        self._operation = options.get("operation", "" if overwrite else "upsert")
        if overwrite and self._operation not in ("insert_overwrite", "insert_overwrite_table"):
            raise InvalidRequestError(
                "an overwrite has to say what it replaces: give the option operation=insert_overwrite (the partitions of "
                "the rows) or operation=insert_overwrite_table"
            )
        self._batch = options.get("batch")
        self._hudi = {key: value for key, value in options.items() if key.lower().startswith("hoodie.")}
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._table = table

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Rows:
        """The rows of one task. Raises InvalidRequestError for more than `LIMIT` bytes."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema) as writer:
            for batch in iterator:
                writer.write_batch(conform(batch, self._schema))
                _check_size(sink.tell())
        return Rows(sink.getvalue().to_pybytes())

    def commit(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Write and commit. Raises what `hudi_table.write_hudi` raises."""
        streams = [message.stream for message in messages if isinstance(message, Rows)]
        _check_size(sum(map(len, streams)))
        found = pa.concat_tables(
            [self._schema.empty_table(), *(pa.ipc.open_stream(each).read_all() for each in streams)]
        )
        self._table.write(found, operation=self._operation, options=self._hudi, batch=self._batch)


def _check_size(size: int) -> None:
    if size > LIMIT:
        raise InvalidRequestError(f"these are more than {LIMIT >> 20} MiB of rows for INSERT or df.write: {_ADVICE}")
