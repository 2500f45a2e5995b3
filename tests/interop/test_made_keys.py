"""Merge-on-read tables without meta columns (`hoodie.populate.meta.fields=false`), ours and
Hudi's: both write, compact and read them, and go on in what the other has written.

Facts (measured on Hudi 0.15.0, 1.0.2 and 1.1.1): rows in logs have the five meta columns, all null;
delete blocks hold keys as the key generator makes them; tables of the Simple, Nonpartitioned and
Complex key generator alone may be such; no release answers incremental queries of them. 0.15.0 and
1.0.2 cannot compact logs where the key has several fields, and neither can read them; 1.0.2 reads
no such table with logs at all. 1.1.1 refuses partial updates of them (`MERGE INTO`), so that each
block of rows has the fields of the key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table, write_hudi
from hudi_table.errors import InvalidOptionError, UnsupportedTableError
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import SCHEMA, Model, rows
from tests.interop.test_later_versions import COMPACTING, INDEX_OPTIONS, LOGS
from tests.support import hudi_rs
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.rows import assert_same_rows

pytestmark = [pytest.mark.interop]

NONE = {"hoodie.populate.meta.fields": "false"}
BY_RELEASE = pytest.mark.parametrize(("version", "release"), [(6, "0.15.0"), (6, "1.1.1"), (8, "1.1.1"), (9, "1.1.1")])
NAMES = SCHEMA.names


def theirs(oracle: HudiOracle, base: Path, operation: str, data: pa.Table, version: int, **options: str) -> None:
    told = {
        "hoodie.table.name": "table",
        "hoodie.datasource.write.operation": operation,
        "hoodie.metadata.enable": "false",
    }
    later = {"hoodie.write.table.version": str(version)} if oracle.is_1x else {}
    oracle.write(base, data, told | later | LOGS | NONE | options)


def agree(
    base: Path, oracle: HudiOracle, expected: Any, names: list[str] = NAMES, key: tuple[str, ...] = ("id",)
) -> None:
    """We, hudi-rs and Hudi read the expected rows."""
    mine = open_table(base).scan().to_arrow()
    assert_same_rows(mine, expected, key=key, of="ours")
    assert_same_rows(hudi_rs.read(base), mine, key=key, columns=names, of="hudi-rs")
    assert_same_rows(oracle.read(base), mine, key=key, columns=names, of=repr(oracle))


@pytest.mark.parametrize("index", ["bucket", "simple"])
@BY_RELEASE
def test_hudi_goes_on_in_our_table_and_we_in_what_it_wrote(
    hudis: Hudis, tmp_path: Path, version: int, release: str, index: str
) -> None:
    base, oracle, model = tmp_path / "table", hudis[release], Model(partitioned=True)
    ours.create(base, index=index, partitioned=True, version=version, type="MergeOnRead", options=NONE)
    steps = (("insert", range(20)), ("upsert", range(10, 25)), ("delete", range(0, 20, 3)))
    for number, (operation, numbers) in enumerate(steps):
        data = rows(numbers, number + 1)
        ours.write(base, operation, data)
        model.apply(operation, data)
    agree(base, oracle, model.rows())
    told = INDEX_OPTIONS[index]
    for number, (operation, numbers) in enumerate((("upsert", range(5, 30)), ("delete", range(7, 12)))):
        data = rows(numbers, number + 4)
        theirs(oracle, base, operation, data, version, **told)
        model.apply(operation, data)
        agree(base, oracle, model.rows())
    for number in (6, 7):
        ours.write(base, "upsert", data := rows(range(20, 26), number))
        model.apply("upsert", data)
    table = open_table(base)
    assert table.compact_logs(force=True)
    agree(base, oracle, model.rows())
    assert table.compact(force=True)
    agree(base, oracle, model.rows())
    ours.write(base, "upsert", data := rows(range(8, 14), 8))
    model.apply("upsert", data)
    theirs(oracle, base, "upsert", data := rows(range(12, 16), 9), version, **told, **COMPACTING)
    model.apply("upsert", data)
    assert not any(row["log_files"] for row in open_table(base).files().to_pylist() if row["latest"])
    agree(base, oracle, model.rows())
    with pytest.raises(HudiFailedError, match="Incremental queries are not supported when meta fields are disabled"):
        oracle.read(
            base, hoodie__datasource__query__type="incremental", hoodie__datasource__read__begin__instanttime="0"
        )
    with pytest.raises(InvalidOptionError, match="when a row changed is not known"):
        open_table(base).scan(query="incremental").to_arrow()


@pytest.mark.parametrize("index", ["bucket", "simple"])
@BY_RELEASE
def test_we_go_on_in_hudis_table(hudis: Hudis, tmp_path: Path, version: int, release: str, index: str) -> None:
    base, oracle, model = tmp_path / "table", hudis[release], Model(partitioned=True)
    told = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        **INDEX_OPTIONS[index],
    }
    steps = (("insert", range(20)), ("upsert", range(10, 25)), ("delete", range(0, 20, 3)))
    for number, (operation, numbers) in enumerate(steps):
        data = rows(numbers, number + 1)
        theirs(oracle, base, operation, data, version, **told)
        model.apply(operation, data)
        agree(base, oracle, model.rows())
    mine = INDEX_OPTIONS[index]
    for number, (operation, numbers) in enumerate((("upsert", range(5, 30)), ("delete", range(7, 12)))):
        data = rows(numbers, number + 4)
        ours.write(base, operation, data, options=mine)
        model.apply(operation, data)
        agree(base, oracle, model.rows())
    assert open_table(base).compact(mine, force=True)
    agree(base, oracle, model.rows())
    theirs(oracle, base, "upsert", data := rows(range(12, 16), 7), version, **told)
    model.apply("upsert", data)
    agree(base, oracle, model.rows())
    assert open_table(base).doctor(keys=True, data=True) == ()


@BY_RELEASE
def test_a_key_of_several_fields_is_made_as_hudi_makes_it(
    hudis: Hudis, tmp_path: Path, version: int, release: str
) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("city", pa.string()), ("ts", pa.int64())])

    def batch(ts: int, *items: tuple[str | None, int | None]) -> pa.Table:
        return pa.Table.from_pylist([{"id": key, "n": n, "city": "x", "ts": ts} for key, n in items], schema=schema)

    base, oracle = tmp_path / "table", hudis[release]
    create_table(
        base, schema, record_key=["id", "n"], partition_by="city", ordering_fields="ts", index="Simple",
        type="MergeOnRead", version=version, options=NONE,
    )  # fmt: skip
    keys = [("a", 1), ("a", None), (None, 1), ("", 1), ("b", 2)]
    write_hudi(base, batch(1, *keys))
    theirs(oracle, base, "upsert", batch(2, *keys[1:]), version, **INDEX_OPTIONS["simple"])
    theirs(oracle, base, "delete", batch(3, ("a", None)), version, **INDEX_OPTIONS["simple"])
    write_hudi(base, batch(3, ("", 1)), operation="delete")
    expected = [{"id": key, "n": n, "city": "x", "ts": ts} for key, n, ts in (("a", 1, 1), (None, 1, 2), ("b", 2, 2))]
    mine = open_table(base).scan().to_arrow()
    assert_same_rows(mine, expected, key=("id", "n"), of="ours")
    assert_same_rows(hudi_rs.read(base), mine, key=("id", "n"), columns=schema.names, of="hudi-rs")
    if oracle.is_1x:
        assert_same_rows(oracle.read(base), mine, key=("id", "n"), columns=schema.names, of=repr(oracle))
    else:
        with pytest.raises(HudiFailedError, match="IllegalStateException"):
            oracle.read(base)
    assert open_table(base).compact(force=True)
    seen = oracle.read(base, hoodie__datasource__query__type="read_optimized")
    assert_same_rows(seen, mine, key=("id", "n"), columns=schema.names, of=repr(oracle))


@pytest.mark.parametrize("release", ["0.15.0", "1.1.1"])
def test_a_complex_key_of_one_field_is_its_text_alone_on_version_6(hudis: Hudis, tmp_path: Path, release: str) -> None:
    base, oracle, model = tmp_path / "table", hudis[release], Model(partitioned=True)
    ours.create(base, index="simple", partitioned=True, type="MergeOnRead", options=NONE, partition_by=["city", "name"])
    filled = [number for number in range(1, 20) if number % 7]
    steps = (("insert", False), ("upsert", True), ("delete", True), ("upsert", False))
    for number, (operation, by_them) in enumerate(steps):
        # The name, a partition here, stays that of the first version.
        data = rows(filled[number * 2 : 12 + number], 1)
        data = data.set_column(data.schema.get_field_index("ts"), "ts", pa.array([number] * len(data), pa.int64()))
        if by_them:
            theirs(oracle, base, operation, data, 6, **INDEX_OPTIONS["simple"])
        else:
            ours.write(base, operation, data)
        model.apply(operation, data)
        agree(base, oracle, model.rows())


def test_a_complex_key_of_one_field_is_refused_of_later_versions_where_hudi_shows_what_it_deleted(
    hudis: Hudis, tmp_path: Path
) -> None:
    base, oracle = tmp_path / "table", hudis["1.1.1"]
    told = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city,name",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        **INDEX_OPTIONS["bucket"],
    }
    data = rows([1, 2, 3, 4], 1)
    theirs(oracle, base, "insert", data, 9, **told)
    theirs(oracle, base, "delete", data.slice(1, 2), 9, **told)
    assert oracle.read(base).num_rows == 4
    for ask in (lambda: open_table(base).scan().to_arrow(), lambda: ours.write(base, "upsert", data)):
        with pytest.raises(UnsupportedTableError, match="a complex key of one field"):
            ask()
