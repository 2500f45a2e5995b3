"""Folders of Parquet files as other tools write them, imported: what is data, what folders say, and
what is refused before a table is made."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hudi_table import InvalidDataError, InvalidRequestError, InvalidSchemaError, create_table, open_table
from hudi_table.importing import import_table
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.store.opening import open_storage

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "city": ["x", "y", None, "a b/c"],
        "day": pa.array([dt.date(2026, 1, 1), dt.date(2026, 1, 2), None, dt.date(2026, 1, 1)]),
        "n": pa.array([10, 20, 20, 30], pa.int64()),
    }
)


def rows_of(base: Path) -> list[dict[str, Any]]:
    return sorted(open_table(base).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("tool", ["pyarrow", "duckdb", "polars", "export"])
def test_what_a_tool_divided_by_columns_comes_back_with_them(tmp_path: Path, tool: str) -> None:
    source = tmp_path / "in"
    if tool == "pyarrow":
        parts = ds.partitioning(pa.schema([ROWS.schema.field("city"), ROWS.schema.field("day")]), flavor="hive")
        ds.write_dataset(ROWS, source, format="parquet", partitioning=parts)
    elif tool == "duckdb":
        duckdb.from_arrow(ROWS).write_parquet(str(source), partition_by=["city", "day"])
    elif tool == "polars":
        import polars as pl

        frame: Any = pl.from_arrow(ROWS)
        frame.write_parquet(source, partition_by=["city", "day"], mkdir=True)
    else:
        made = create_table(tmp_path / "first", ROWS.schema, record_key="id")
        made.write(ROWS)
        made.scan().export(str(source), partition_by=["city", "day"])
    done = import_table(tmp_path / "lake", source, record_key="id")
    assert (done.form, done.rows_read, done.rows, done.partitions, done.replayed) == ("parquet", 4, 4, 4, False)
    table = open_table(tmp_path / "lake")
    assert table.context.config.partition_fields == ("city", "day")
    assert table.schema().field("day").type == pa.date32()
    assert rows_of(tmp_path / "lake") == [dict(sorted(row.items())) | row for row in ROWS.to_pylist()]


def folder(tmp_path: Path, files: dict[str, pa.Table]) -> Path:
    for name, rows in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, tmp_path / "in" / name)
    return tmp_path / "in"


def ids(*found: int, **more: Any) -> pa.Table:
    return pa.table({"id": pa.array(found, pa.int64()), **more})


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        (["1", "-20"], pa.int32(), [1, -20]),
        (["1", "3000000000"], pa.int64(), [1, 3_000_000_000]),
        (["01", "02"], pa.string(), ["01", "02"]),
        (["1", "x"], pa.string(), ["1", "x"]),
        (["2026-01-31", "__HIVE_DEFAULT_PARTITION__"], pa.date32(), [dt.date(2026, 1, 31), None]),
        (["2026-01-31", "2026-02-31"], pa.string(), ["2026-01-31", "2026-02-31"]),
        (["a%2Fb", "%C3%A4"], pa.string(), ["a/b", "ä"]),
        (["99999999999999999999", "1"], pa.string(), ["99999999999999999999", "1"]),
    ],
)
def test_a_column_that_only_folders_have_gets_its_type_from_all_its_values(
    tmp_path: Path, values: list[str], kind: pa.DataType, read: list[Any]
) -> None:
    source = folder(tmp_path, {f"p={value}/f.parquet": ids(number) for number, value in enumerate(values)})
    import_table(tmp_path / "lake", source, record_key="id", partition_by=[])
    assert open_table(tmp_path / "lake").schema().field("p").type == kind
    assert [row["p"] for row in rows_of(tmp_path / "lake")] == read


def test_names_that_tools_hide_are_no_data_and_columns_of_all_files_are_united(tmp_path: Path) -> None:
    source = folder(
        tmp_path,
        {
            "a.parquet": ids(1),
            "b.parquet": pa.table({"id": pa.array([2], pa.int32()), "v": ["x"]}),
            "_temporary/0/c.parquet": ids(9),
            ".staging/c.parquet": ids(9),
            "_x.parquet": ids(9),
        },
    )
    (source / "_SUCCESS").touch()
    import_table(tmp_path / "lake", source, record_key="id")
    assert rows_of(tmp_path / "lake") == [{"id": 1, "v": None}, {"id": 2, "v": "x"}]


def test_a_column_in_files_and_folders_must_say_the_same(tmp_path: Path) -> None:
    source = folder(tmp_path, {"p=1/a.parquet": ids(1, p=[1]), "p=2/a.parquet": ids(2, p=[2])})
    import_table(tmp_path / "lake", source, record_key="id")
    assert rows_of(tmp_path / "lake") == [{"id": 1, "p": 1}, {"id": 2, "p": 2}]
    folder(tmp_path, {"p=3/a.parquet": ids(3, p=[4])})
    with pytest.raises(InvalidDataError, match=r"p=3/a.parquet holds other values of 'p' than its folder names"):
        import_table(tmp_path / "other", source, record_key="id")


REFUSED: list[tuple[dict[str, pa.Table], type[Exception], str]] = [
    ({}, InvalidRequestError, "no Parquet file lies at"),
    ({"a.parquet": ids(1), "b.csv": ids(2)}, InvalidRequestError, "b.csv at .* is no Parquet file by its name"),
    ({"_delta_log/0.parquet": ids(1)}, InvalidRequestError, "is a table of the form delta"),
    ({"metadata/v1.metadata.json": ids(1)}, InvalidRequestError, "is a table of the form iceberg"),
    ({".hoodie/hoodie.properties": ids(1)}, InvalidRequestError, "is a Hudi table already"),
    ({"p=1/a.parquet": ids(1), "q=1/a.parquet": ids(2)}, InvalidDataError, "q=1/a.parquet name the columns .'q'."),
    ({"p=1/a.parquet": ids(1), "b.parquet": ids(2)}, InvalidDataError, "name the columns"),
    ({"a.parquet": ids(1, v=["x"]), "b.parquet": ids(2, v=[[1]])}, InvalidSchemaError, "b.parquet does not fit"),
    ({"a.parquet": ids(1), "b.parquet": ids(1)}, InvalidDataError, "2 rows of .* have the record key '1': name the"),
    ({"a.parquet": pa.table({"id": pa.array([None], pa.int64())})}, InvalidDataError, "id"),
]


@pytest.mark.parametrize(("files", "error", "message"), REFUSED)
def test_what_is_refused_makes_no_table(
    tmp_path: Path, files: dict[str, pa.Table], error: type[Exception], message: str
) -> None:
    source = folder(tmp_path, files) if files else tmp_path / "in"
    with pytest.raises(error, match=message):
        import_table(tmp_path / "lake", source, format="parquet", record_key="id")
    assert not (tmp_path / "lake").exists()


def test_a_damaged_file_is_named_and_leaves_a_table_without_rows(tmp_path: Path) -> None:
    source = folder(tmp_path, {"a.parquet": ids(*range(50_000)), "b.parquet": ids(-1)})
    pq.write_table(
        ids(*range(50_000), v=[1.5] * 50_000), source / "a.parquet", write_page_checksum=True, compression="none"
    )
    data = bytearray((source / "a.parquet").read_bytes())
    data[len(data) - 5_000 - 395_000 // 2] ^= 0xFF
    (source / "a.parquet").write_bytes(data)
    with pytest.raises(InvalidDataError, match=r"a.parquet cannot be read"):
        import_table(tmp_path / "lake", source, record_key="id")
    if (tmp_path / "lake").exists():
        assert open_table(tmp_path / "lake").scan().count() == 0


def test_files_that_change_while_they_are_read_are_refused(tmp_path: Path) -> None:
    source = folder(tmp_path, {"a.parquet": ids(1), "b.parquet": ids(2)})
    found = ParquetFolder.open(open_storage(str(source)))
    assert [batch.num_rows for batch in found.batches(["id"])] == [1, 1]
    folder(tmp_path, {"c.parquet": ids(3)})
    with pytest.raises(InvalidDataError, match=r"c.parquet changed at .* while it was read"):
        list(found.batches(["id"]))
