"""Iceberg tables, imported: by catalog, by metadata file, by folder; snapshots, deletes, keys."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType
from pyiceberg.utils.config import Config

from hudi_table import InvalidDataError, InvalidOptionError, InvalidRequestError, open_table
from hudi_table.importing import import_table

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "city": ["a", "b", None],
        "at": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
    },
    pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.string()), ("at", pa.timestamp("us", "UTC"))]),
)
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "at", TimestamptzType()),
    identifier_field_ids=[1],
)


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    made = SqlCatalog("home", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    made.create_namespace("air")
    return made


@pytest.fixture
def table(catalog: SqlCatalog) -> Any:
    found = catalog.create_table("air.flights", SCHEMA)
    with found.update_spec() as spec:
        spec.add_identity("city")
    found.append(ROWS)
    return found


def rows_of(base: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = open_table(base).scan().to_arrow().sort_by("id").to_pylist()
    return found


def test_key_and_partitions_are_those_of_the_table(tmp_path: Path, table: Any) -> None:
    done = import_table(tmp_path / "lake", table)
    assert (done.form, done.rows, done.partitions) == ("iceberg", 3, 3)
    found = open_table(tmp_path / "lake")
    assert (found.record_key, found.context.config.partition_fields) == (("id",), ("city",))
    assert not found.schema().field("id").nullable
    assert rows_of(tmp_path / "lake") == ROWS.to_pylist()


def test_a_snapshot_is_read_as_it_was_and_deletes_count(tmp_path: Path, table: Any) -> None:
    first = table.current_snapshot().snapshot_id
    table.delete("id = 2")
    import_table(tmp_path / "old", table, source_version=first)
    import_table(tmp_path / "new", table)
    assert [row["id"] for row in rows_of(tmp_path / "old")] == [1, 2, 3]
    assert [row["id"] for row in rows_of(tmp_path / "new")] == [1, 3]
    with pytest.raises(InvalidOptionError, match=f"version is '77', which is no snapshot of .*air.flights.*{first}"):
        import_table(tmp_path / "lake", table, source_version=77)


def test_columns_are_those_of_today_by_their_ids(tmp_path: Path, table: Any) -> None:
    with table.update_schema() as change:
        change.rename_column("city", "place")
        change.add_column("more", LongType())
    import_table(tmp_path / "lake", table)
    assert rows_of(tmp_path / "lake") == [
        {"id": row["id"], "place": row["city"], "at": row["at"], "more": None} for row in ROWS.to_pylist()
    ]


def test_a_metadata_file_a_catalog_and_a_folder_with_a_hint_are_the_same_table(
    tmp_path: Path, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_table(tmp_path / "one", table.metadata_location.removeprefix("file://"))
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", _configured(f"sqlite:///{tmp_path}/c.db"))
    import_table(tmp_path / "two", "air.flights", catalog="home")
    folder = Path(table.location().removeprefix("file://"))
    with pytest.raises(InvalidRequestError, match=r"has no version-hint\.text: name its catalog, or the metadata file"):
        import_table(tmp_path / "three", folder)
    newest = Path(table.metadata_location).name
    (folder / "metadata" / "version-hint.text").write_text(newest)
    import_table(tmp_path / "three", folder)
    (folder / "metadata" / "version-hint.text").write_text("7")
    shutil.copy(folder / "metadata" / newest, folder / "metadata" / "v7.metadata.json")
    import_table(tmp_path / "four", folder)
    assert [rows_of(tmp_path / name) for name in ("one", "two", "three", "four")] == [ROWS.to_pylist()] * 4


def _configured(uri: str) -> Config:
    """What a file `.pyiceberg.yaml` says of a catalog."""
    found = Config()
    found.config = {"catalog": {"home": {"type": "sql", "uri": uri}}}
    return found


def test_a_table_without_rows_and_one_that_is_not_there(tmp_path: Path, catalog: SqlCatalog) -> None:
    empty = catalog.create_table("air.empty", SCHEMA)
    assert import_table(tmp_path / "lake", empty).rows == 0
    assert open_table(tmp_path / "lake").scan().count() == 0
    with pytest.raises((InvalidDataError, InvalidRequestError), match=r"air\.nope of the catalog home cannot be read"):
        import_table(tmp_path / "other", "air.nope", catalog="home")
    with pytest.raises(InvalidOptionError, match="source is a table of the form iceberg: leave format out"):
        import_table(tmp_path / "other", "air.empty", catalog="home", format="delta")
    metadata = empty.metadata_location.removeprefix("file://")
    with pytest.raises(InvalidOptionError, match="source is a table of the form iceberg: leave format out"):
        import_table(tmp_path / "other", metadata, format="parquet")
    with pytest.raises(InvalidOptionError, match="source is a table already: leave one out"):
        import_table(tmp_path / "other", empty, catalog="home")
    for source, named in ((empty, None), ("air.empty", "home")):
        with pytest.raises(InvalidOptionError, match="source_options belong to a source that is a path or URI"):
            import_table(tmp_path / "other", source, catalog=named, source_options={"region": "eu-west-1"})
    with pytest.raises(
        InvalidOptionError, match="source_options has 'fsync', which does nothing for a table of the form iceberg"
    ):
        import_table(tmp_path / "other", metadata, source_options={"fsync": "true"})
    assert not (tmp_path / "other").exists()
