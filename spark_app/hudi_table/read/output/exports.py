"""What every lazy result offers to Arrow's consumers, over one method that gives batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.read.moments import EARLIEST

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from hudi_table.read.output.export import ExportResult
    from hudi_table.table.timeline.context import TableContext

_OF_CHANGES = ("incremental", "cdc")


def extra(module: str, name: str) -> Any:
    """A library that the base install lacks. Raises InvalidRequestError with the command that
    installs it, by the extra `name`."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InvalidRequestError(f"{module} is not installed: pip install 'hudi-table[{name}]' brings it") from error


class ArrowResult(ABC):
    """A lazy result. Any Arrow consumer takes it as it is, as often as it likes."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The result's Arrow schema."""

    @abstractmethod
    def _batches(self) -> Iterator[pa.RecordBatch]:
        """A new stream of batches of `schema`; closing it ends the work behind it."""

    @abstractmethod
    def _all_batches(self) -> list[pa.RecordBatch]:
        """The same as a whole: what goes before the last of them is read begins anew, for nobody
        has seen a row."""

    def to_batches(self) -> pa.RecordBatchReader:
        """A stream of record batches; closing or dropping it stops the reading threads."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def to_arrow(self) -> pa.Table:
        """All rows in memory."""
        return pa.Table.from_batches(self._all_batches(), self.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a pandas data frame; `options` are those of `pyarrow.Table.to_pandas`."""
        extra("pandas", "pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas(**options)
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over this result, in `connection` or DuckDB's default one; it reads
        only when it is run."""
        duckdb = extra("duckdb", "query")
        return (connection or duckdb.default_connection()).from_arrow(self)

    def export(
        self,
        target: str,
        format: str = "parquet",  # noqa: A002 - the name that Spark and Hudi's exporter use
        *,
        partition_by: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
    ) -> ExportResult:
        """Write the rows into files below `target`, a path or URI of a folder that is empty or not
        there.

        `format`: ``"parquet"``, ``"csv"`` or ``"jsonl"``. `partition_by`: columns that become
        folders `column=value`. All rows are those of one moment, and a file `_SUCCESS` comes last.
        The result's `next_since` is where an incremental export goes on: none of the writes that
        are pending now completes before it. Raises InvalidOptionError, also for changes with a
        limit, InvalidRequestError if the folder is not empty or lies in the table, and what reading
        raises; then there is no `_SUCCESS`.
        """
        from hudi_table.read.output.export import export
        from hudi_table.table.store.opening import open_storage, refuse_nested

        next_since = self.next_since()
        opened = open_storage(str(target), storage_options)
        refuse_nested(opened, self.context.storage)
        return export(self.to_batches(), opened, format, partition_by, self._said(), next_since)

    def next_since(self) -> Callable[[], str]:
        """Where an export of these rows goes on, to be asked once all of them have come; this is
        called before the rows are chosen, so that what is stable now is among them.

        Behind some rows of a table that is the earliest: nothing tells which they are. Raises
        InvalidOptionError for changes with a limit, behind which no export could go on.
        """
        said, stable = self._said(), self._stable()
        if said["limit"] is None:
            return lambda: min(stable, self._newest()) or EARLIEST
        if said["query"] in _OF_CHANGES:
            raise InvalidOptionError(
                f"limit is {said['limit']} and only some changes would be exported, so that the next export would pass over "
                "the other changes: leave the limit out, or end the range by until"
            )
        return lambda: EARLIEST

    @property
    @abstractmethod
    def context(self) -> TableContext:
        """The table."""

    @abstractmethod
    def _said(self) -> dict[str, Any]:
        """What was asked for, as JSON."""

    @abstractmethod
    def _stable(self) -> str:
        """The newest instant before which nothing is pending, '' if there is none."""

    @abstractmethod
    def _newest(self) -> str:
        """The newest instant whose rows are in the result, '' if there is none."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new Arrow stream of the rows."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The result's schema as an Arrow capsule."""
        return self.schema.__arrow_c_schema__()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.to_batches())
