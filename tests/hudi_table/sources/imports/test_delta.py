"""Delta tables, imported: versions, deletion vectors, mapped columns, what they are divided by."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from hudi_table import InvalidDataError, InvalidOptionError, InvalidRequestError, open_table
from hudi_table.importing import import_table
from tests.support.delta_tables import with_deleted, with_mapped_columns

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "m": ["a", "b", None],
        "t": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
        "d": pa.array([None, Decimal("1.00"), Decimal("-2.50")], pa.decimal128(10, 2)),
        "b": pa.array([b"x", b"", None]),
        "l": pa.array([[1], [], None], pa.list_(pa.int32())),
        "s": pa.array([{"u": 1}, {"u": None}, None], pa.struct([("u", pa.int64())])),
        "text": ["x", None, ""],
    }
)


def ids(base: Path) -> list[int]:
    return sorted(open_table(base).scan().to_arrow().column("id").to_pylist())


def test_every_value_comes_and_the_table_is_divided_alike(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "in", ROWS, partition_by=["m"])
    done = import_table(tmp_path / "lake", tmp_path / "in", record_key="id")
    assert (done.form, done.rows_read, done.rows, done.partitions) == ("delta", 3, 3, 3)
    table = open_table(tmp_path / "lake")
    assert table.context.config.partition_fields == ("m",)
    assert table.scan().to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()
    assert table.history(limit=1).to_pylist()[0]["operation"] == "INSERT_OVERWRITE_TABLE"


def test_a_version_is_read_as_it_was(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "in", ROWS.slice(0, 1))
    write_deltalake(tmp_path / "in", ROWS.slice(1), mode="append")
    import_table(tmp_path / "old", tmp_path / "in", source_version=0, record_key="id")
    import_table(tmp_path / "new", tmp_path / "in", record_key="id")
    import_table(tmp_path / "opened", DeltaTable(tmp_path / "in", version=0), record_key="id")
    assert [ids(tmp_path / name) for name in ("old", "new", "opened")] == [[1], [1, 2, 3], [1]]
    with pytest.raises(InvalidOptionError, match=r"version is 7, and the newest of .* is 1"):
        import_table(tmp_path / "later", tmp_path / "in", source_version=7, record_key="id")
    with pytest.raises(InvalidOptionError, match="version is 'x': those of a Delta table are whole numbers"):
        import_table(tmp_path / "later", tmp_path / "in", source_version="x", record_key="id")
    with pytest.raises(InvalidOptionError, match="give a DeltaTable that stands at it"):
        import_table(tmp_path / "later", DeltaTable(tmp_path / "in"), source_version=0, record_key="id")
    assert not (tmp_path / "later").exists()


def test_rows_that_a_deletion_vector_deletes_do_not_come(tmp_path: Path) -> None:
    with_deleted(tmp_path / "in", pa.table({"id": pa.array(range(6), pa.int64())}), [1, 3])
    done = import_table(tmp_path / "lake", tmp_path / "in", record_key="id")
    assert (ids(tmp_path / "lake"), done.rows) == ([0, 2, 4, 5], 4)


def test_columns_that_are_named_otherwise_in_the_files_have_the_names_of_the_table(tmp_path: Path) -> None:
    with_mapped_columns(tmp_path / "in", ROWS.select(["id", "text"]))
    import_table(tmp_path / "lake", tmp_path / "in", record_key="id")
    assert (
        open_table(tmp_path / "lake").scan().to_arrow().sort_by("id").to_pylist()
        == ROWS.select(["id", "text"]).to_pylist()
    )


def test_a_file_that_is_gone_is_named_and_no_table_is_made(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "in", ROWS)
    next((tmp_path / "in").glob("*.parquet")).unlink()
    with pytest.raises((InvalidDataError, InvalidRequestError), match=r"parquet"):
        import_table(tmp_path / "lake", tmp_path / "in", record_key="id")
    assert not (tmp_path / "lake").exists()


def test_what_is_no_delta_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "in" / "_delta_log").mkdir(parents=True)
    with pytest.raises((InvalidDataError, InvalidRequestError), match="in"):
        import_table(tmp_path / "lake", tmp_path / "in", record_key="id")
    with pytest.raises(InvalidRequestError, match=r"source is a pyarrow\.lib\.Table: give a path or URI"):
        import_table(tmp_path / "lake", ROWS, record_key="id")
    with pytest.raises(InvalidOptionError, match="format is 'orc': give one of parquet, delta, iceberg"):
        import_table(tmp_path / "lake", tmp_path / "in", format="orc", record_key="id")  # type: ignore[arg-type]
    write_deltalake(tmp_path / "real", ROWS)
    with pytest.raises(
        InvalidOptionError, match="source_options has 'fsync', which does nothing for a table of the form delta"
    ):
        import_table(tmp_path / "lake", tmp_path / "real", record_key="id", source_options={"fsync": "true"})
    with pytest.raises(InvalidOptionError, match="record_key is missing"):
        import_table(tmp_path / "lake", tmp_path / "real")
    assert not (tmp_path / "lake").exists()
