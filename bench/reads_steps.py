"""Readers that are raced: all columns, three columns, and queries of TPC-H, over the same base
files.

Steps: `all` and `three` end with an Arrow table in memory, queries with their answer; each is
checked against `_expected.json` beside the rows. `base` is a folder with one table for each kind of
reader, see `reads`.
"""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

from bench.reads_queries import QUERIES, polars_answer
from bench.settings import ORDERING

EXPECTED = "_expected.json"
THREE = ("l_orderkey", "l_extendedprice", "l_shipmode")
DATA, JOINED, HUDI, DELTA, ICEBERG = "files.json", "joined.json", "hudi", "delta", "iceberg"
"""What lies in a folder that is read: the paths of its base files and of the tables that queries
join, and what holds the files for each kind of reader."""


def check(rows: Path, step: str, found: Any) -> None:
    """Raises AssertionError if a read did not give what it must."""
    wanted = json.loads((rows / EXPECTED).read_text())[step]
    assert _same(wanted, comparable(found)), f"{step} gave {found}, must give {wanted}"


def held(table: Any) -> list[int]:
    """What all columns, or three of them, are checked by."""
    import pyarrow.compute as pc

    name = ORDERING if ORDERING in table.column_names else THREE[0]
    assert table.num_columns in (len(THREE), 19), table.column_names
    return [len(table), pc.sum(table.column(name)).as_py() or 0]


def comparable(value: Any) -> Any:
    """An answer as JSON has it."""
    if isinstance(value, (list, tuple)):
        return [comparable(item) for item in value]
    return str(value) if isinstance(value, date) else float(value) if isinstance(value, Decimal) else value


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, list):
        return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right, strict=True))
    return math.isclose(left, right, rel_tol=5e-5) if isinstance(left, float) else bool(left == right)


def columns_of(step: str) -> list[str] | None:
    return list(THREE) if step == "three" else None


class Reader:
    """A contender: `table` reads columns, `query` answers; here is what all of them share."""

    def all(self, rows: Path, base: Path) -> None:
        check(rows, "all", held(self.table(base, None)))

    def three(self, rows: Path, base: Path) -> None:
        check(rows, "three", held(self.table(base, list(THREE))))

    def q1(self, rows: Path, base: Path) -> None:
        check(rows, "q1", self.query(base, "q1"))

    def q3(self, rows: Path, base: Path) -> None:
        check(rows, "q3", self.query(base, "q3"))

    def q6(self, rows: Path, base: Path) -> None:
        check(rows, "q6", self.query(base, "q6"))

    def q12(self, rows: Path, base: Path) -> None:
        check(rows, "q12", self.query(base, "q12"))

    def q14(self, rows: Path, base: Path) -> None:
        check(rows, "q14", self.query(base, "q14"))

    def table(self, base: Path, columns: list[str] | None) -> Any:
        raise NotImplementedError

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError


def files(base: Path) -> list[str]:
    """The base files of the table in a folder."""
    found: list[str] = json.loads((base / DATA).read_text())
    return found


def joined(base: Path) -> dict[str, str]:
    """The Parquet files of the tables that queries join, by their names."""
    found: dict[str, str] = json.loads((base / JOINED).read_text())
    return found


def columns_or_all(base: Path, columns: list[str] | None) -> list[str]:
    import pyarrow.parquet as pq

    return columns or [name for name in pq.read_schema(files(base)[0]).names if not name.startswith("_hoodie")]


def by_duckdb(connection: Any, relation: Any, base: Path, name: str) -> list[tuple[Any, ...]]:
    """DuckDB's answer over a relation."""
    for side, path in joined(base).items():
        connection.read_parquet(path).create_view(side, replace=True)
    found: list[tuple[Any, ...]] = relation.query("lineitem", QUERIES[name]).fetchall()
    return found


def by_datafusion(session: Any, frame: Any, base: Path, name: str) -> list[tuple[Any, ...]]:
    """DataFusion's answer over a frame."""
    session.register_view("lineitem", frame)
    for side, path in joined(base).items():
        session.register_parquet(side, path)
    return rows_of(session.sql(QUERIES[name]).to_arrow_table())


def by_polars(frame: Any, base: Path, name: str) -> list[tuple[Any, ...]]:
    """Polars' answer over a lazy frame."""
    import polars as pl

    return polars_answer(name, frame, {side: pl.scan_parquet(path) for side, path in joined(base).items()})


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Ours(Reader):
    """Ours: `to_arrow`, and queries by DuckDB."""

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect()

    def table(self, base: Path, columns: list[str] | None) -> Any:
        from hudi_table import open_table

        return open_table(str(base / HUDI)).scan(columns=columns).to_arrow()

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        from hudi_table import open_table

        relation = open_table(str(base / HUDI)).scan().to_duckdb(self._connection)
        return by_duckdb(self._connection, relation, base, name)


class OursPolars(Reader):
    """Ours, by Polars."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        frame = self._frame(base)
        return (frame if columns is None else frame.select(columns)).collect().to_arrow()

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        return by_polars(self._frame(base), base, name)

    def _frame(self, base: Path) -> Any:
        from hudi_table import open_table

        return open_table(str(base / HUDI)).scan().to_polars()


class OursDataFusion(Reader):
    """Ours, by DataFusion."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        return self._frame(base, self._session(), columns).to_arrow_table()

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        session = self._session()
        return by_datafusion(session, self._frame(base, session, None), base, name)

    def _session(self) -> Any:
        from datafusion import SessionContext

        return SessionContext()

    def _frame(self, base: Path, session: Any, columns: list[str] | None) -> Any:
        from hudi_table import open_table

        return open_table(str(base / HUDI)).scan(columns=columns).to_datafusion(session)


class DataFusion(OursDataFusion):
    """DataFusion on the files."""

    def _frame(self, base: Path, session: Any, columns: list[str] | None) -> Any:
        parts = [session.read_parquet(path) for path in files(base)]
        return reduce(lambda one, other: one.union(other), parts).select(*columns_or_all(base, columns))


class DuckDB(Reader):
    """DuckDB on the files."""

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect()

    def table(self, base: Path, columns: list[str] | None) -> Any:
        relation = self._connection.read_parquet(files(base))
        return relation.select(*columns_or_all(base, columns)).to_arrow_table()

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        return by_duckdb(self._connection, self._connection.read_parquet(files(base)), base, name)


class Polars(Reader):
    """Polars on the files."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        return self._frame(base).select(columns_or_all(base, columns)).collect().to_arrow()

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        return by_polars(self._frame(base), base, name)

    def _frame(self, base: Path) -> Any:
        import polars as pl

        return pl.scan_parquet(files(base))


class PyArrow(Reader):
    """pyarrow's dataset over the files."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        import pyarrow.dataset as ds

        return ds.dataset(files(base), format="parquet").to_table(columns_or_all(base, columns))


class DeltaRs(Reader):
    """delta-rs over a table of the same files, by DataFusion."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        import pyarrow as pa

        names = columns_or_all(base, columns)
        return pa.table(self._run(base, f"select {', '.join(names)} from lineitem"))

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        import pyarrow as pa

        return rows_of(pa.table(self._run(base, QUERIES[name])))

    def _run(self, base: Path, text: str) -> Any:
        from deltalake import DeltaTable, QueryBuilder

        engine = QueryBuilder().register("lineitem", DeltaTable(base / DELTA))
        for side, path in joined(base).items():
            engine.execute(f"create external table {side} stored as parquet location '{path}'")
        return engine.execute(text).read_all()


class PyIceberg(Reader):
    """pyiceberg over a table of the same files."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        found = iceberg_catalog(base).load_table("bench.lineitem")
        return found.scan(selected_fields=tuple(columns_or_all(base, columns))).to_arrow()


class HudiRs(Reader):
    """hudi-rs over the table of ours."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        import pyarrow as pa
        from hudi import HudiReadOptions, HudiTableBuilder

        found = HudiTableBuilder.from_base_uri(str(base / HUDI)).build()
        options = HudiReadOptions(projection=columns_or_all(base, columns))
        return pa.Table.from_batches([pa.record_batch(batch) for batch in found.read(options)])


def iceberg_catalog(base: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    folder = base / ICEBERG
    return SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


READERS: dict[str, type[Reader]] = {
    "reads-ours": Ours,
    "reads-ours-polars": OursPolars,
    "reads-ours-datafusion": OursDataFusion,
    "reads-duckdb": DuckDB,
    "reads-polars": Polars,
    "reads-datafusion": DataFusion,
    "reads-pyarrow": PyArrow,
    "reads-delta": DeltaRs,
    "reads-iceberg": PyIceberg,
    "reads-hudi-rs": HudiRs,
}
