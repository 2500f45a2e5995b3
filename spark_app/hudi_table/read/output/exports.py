"""What every lazy result offers to Arrow's consumers, over one method that gives batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_table.errors import InvalidRequestError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd


def extra(module: str, name: str) -> Any:
    """A library that the base install lacks. Raises InvalidRequestError with the command that installs it, by the extra `name`."""
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
        """The same as a whole: what goes before the last of them is read begins anew, for nobody has seen a row."""

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
        """A DuckDB relation over this result, in `connection` or DuckDB's default one; it reads only when it is run."""
        duckdb = extra("duckdb", "query")
        return (connection or duckdb.default_connection()).from_arrow(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new Arrow stream of the rows."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The result's schema as an Arrow capsule."""
        return self.schema.__arrow_c_schema__()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.to_batches())
