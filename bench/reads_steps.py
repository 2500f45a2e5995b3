"""Readers that are raced: all columns, three columns, and two queries of TPC-H, over the same base
files.

Steps: `all` and `three` end with an Arrow table in memory, `q1` and `q6` with the answer of TPC-H's
query 1 and 6; each is checked against `_expected.json` beside the rows. `base` is a folder with one
table for each kind of reader, see `reads`.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.settings import ORDERING

EXPECTED = "_expected.json"
THREE = ("l_orderkey", "l_extendedprice", "l_shipmode")
DATA, HUDI, DELTA, ICEBERG = "files.json", "hudi", "delta", "iceberg"
"""What lies in a folder that is read: the paths of its base files, and what holds them for each
kind of reader."""

Q1 = """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)),
sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
from lineitem where l_shipdate <= date '1998-09-02' group by 1, 2 order by 1, 2"""
Q6 = """select sum(l_extendedprice * l_discount) from lineitem where l_shipdate >= date '1994-01-01'
and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24"""
QUERIES = {"q1": Q1, "q6": Q6}


def check(rows: Path, step: str, found: Any) -> None:
    """Raises AssertionError if a read did not give what it must."""
    wanted = json.loads((rows / EXPECTED).read_text())[step]
    assert _same(wanted, _plain(found)), f"{step} gave {found}, must give {wanted}"


def held(table: Any) -> list[int]:
    """What all columns, or three of them, are checked by."""
    import pyarrow.compute as pc

    name = ORDERING if ORDERING in table.column_names else THREE[0]
    assert table.num_columns in (len(THREE), 19), table.column_names
    return [len(table), pc.sum(table.column(name)).as_py() or 0]


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value


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

    def q6(self, rows: Path, base: Path) -> None:
        check(rows, "q6", self.query(base, "q6"))

    def table(self, base: Path, columns: list[str] | None) -> Any:
        raise NotImplementedError

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError


def files(base: Path) -> list[str]:
    """The base files of the table in a folder."""
    found: list[str] = json.loads((base / DATA).read_text())
    return found


def columns_or_all(base: Path, columns: list[str] | None) -> list[str]:
    import pyarrow.parquet as pq

    return columns or [name for name in pq.read_schema(files(base)[0]).names if not name.startswith("_hoodie")]


def answered(relation: Any, name: str) -> list[tuple[Any, ...]]:
    """DuckDB's answer over a relation."""
    found: list[tuple[Any, ...]] = relation.query("lineitem", QUERIES[name]).fetchall()
    return found


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
        return answered(relation, name)


class OursPolars(Reader):
    """Ours, by Polars."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        frame = self._frame(base)
        return (frame if columns is None else frame.select(columns)).collect().to_arrow()

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        return polars_query(self._frame(base), name)

    def _frame(self, base: Path) -> Any:
        from hudi_table import open_table

        return open_table(str(base / HUDI)).scan().to_polars()


class DuckDB(Reader):
    """DuckDB on the files."""

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect()

    def table(self, base: Path, columns: list[str] | None) -> Any:
        relation = self._connection.read_parquet(files(base))
        return relation.select(*columns_or_all(base, columns)).to_arrow_table()

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        return answered(self._connection.read_parquet(files(base)), name)


class Polars(Reader):
    """Polars on the files."""

    def table(self, base: Path, columns: list[str] | None) -> Any:
        return self._frame(base).select(columns_or_all(base, columns)).collect().to_arrow()

    def query(self, base: Path, name: str) -> list[tuple[Any, ...]]:
        return polars_query(self._frame(base), name)

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

        found = pa.table(self._run(base, QUERIES[name]))
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def _run(self, base: Path, text: str) -> Any:
        from deltalake import DeltaTable, QueryBuilder

        return QueryBuilder().register("lineitem", DeltaTable(base / DELTA)).execute(text).read_all()


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


def polars_query(frame: Any, name: str) -> list[tuple[Any, ...]]:
    """The queries in Polars' own words."""
    from datetime import date

    import polars as pl

    price, discount, tax = (pl.col(f"l_{each}") for each in ("extendedprice", "discount", "tax"))
    shipped, quantity = pl.col("l_shipdate"), pl.col("l_quantity")
    if name == "q6":
        kept = frame.filter(
            shipped >= date(1994, 1, 1), shipped < date(1995, 1, 1), discount >= 0.05, discount <= 0.07, quantity < 24
        )
        return list(kept.select((price * discount).sum()).collect().rows())
    groups = frame.filter(shipped <= date(1998, 9, 2)).group_by("l_returnflag", "l_linestatus")
    sold = price * (1 - discount)
    sums = (quantity.sum(), price.sum(), sold.sum().alias("sold"), (sold * (1 + tax)).sum().alias("charged"))
    means = (each.mean().alias(f"mean_{number}") for number, each in enumerate((quantity, price, discount)))
    found = groups.agg(*sums, *means, pl.len()).sort("l_returnflag", "l_linestatus")
    return list(found.collect().rows())


READERS: dict[str, type[Reader]] = {
    "reads-ours": Ours,
    "reads-ours-polars": OursPolars,
    "reads-duckdb": DuckDB,
    "reads-polars": Polars,
    "reads-pyarrow": PyArrow,
    "reads-delta": DeltaRs,
    "reads-iceberg": PyIceberg,
    "reads-hudi-rs": HudiRs,
}
