"""Columns of VECTOR and BLOB beside Apache Hudi 1.2.0: tables of ours that it reads and writes on,
tables of its own that we continue. Of VARIANT what its Spark 3.5 says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import create_table, open_table, vector_search
from tests.interop.further import Releases
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.logical_types import SCHEMA, golden_table
from tests.support.logical_types import rows_of as rows_with_variants

pytestmark = [pytest.mark.interop, pytest.mark.at_scale(2)]

VECTORS = pa.schema([field for field in SCHEMA if field.name not in ("x", "y")])
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


def rows_of(numbers: range, ts: int) -> pa.Table:
    return rows_with_variants(numbers, ts).select(VECTORS.names)


@pytest.fixture
def hudi(releases: Releases) -> HudiOracle:
    return releases["1.2.0"]


def _run(hudi: HudiOracle, statement: str) -> None:
    """A statement that returns no rows: the oracle cannot write a file of them."""
    try:
        hudi.sql(statement)
    except AssertionError as error:
        if "empty or nested empty schemas" not in str(error):
            raise


def _registered(hudi: HudiOracle, name: str, base: Path) -> str:
    _run(hudi, f"DROP TABLE IF EXISTS {name}")
    _run(hudi, f"CREATE TABLE {name} USING hudi LOCATION '{base}'")
    return name


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_hudi_reads_our_vectors_and_writes_on(hudi: HudiOracle, tmp_path: Path, kind: Any) -> None:
    base = tmp_path / "ours"
    table = create_table(
        base,
        VECTORS,
        record_key="id",
        ordering_fields="ts",
        type=kind,
        version=9,
        index={"type": "Bucket", "buckets": 2},
    )
    first, second = rows_of(range(20), 1), rows_of(range(10, 30), 2)
    table.upsert(first)
    table.upsert(second)
    expected = {row["id"]: row for part in (first, second) for row in part.to_pylist()}

    def same() -> None:
        for rows in (hudi.read(base).select(VECTORS.names), open_table(base).scan().to_arrow()):
            assert {row["id"]: row for row in rows.to_pylist()} == expected

    same()
    name = _registered(hudi, f"ours_{kind.lower()}", base)
    _run(
        hudi,
        f"UPDATE {name} SET ts = 5, v = array(cast(1.5 AS FLOAT), cast(2.5 AS FLOAT), cast(3.5 AS FLOAT)) WHERE id = 'k001'",
    )
    _run(hudi, f"DELETE FROM {name} WHERE id = 'k002'")
    expected["k001"] |= {"ts": 5, "v": [1.5, 2.5, 3.5]}
    del expected["k002"]
    same()
    open_table(base).upsert(third := rows_of(range(4, 6), 7))
    expected |= {row["id"]: row for row in third.to_pylist()}
    if kind == "MergeOnRead":
        open_table(base).compact()
    same()


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot_product"])
def test_hudis_search_and_ours_find_the_same(hudi: HudiOracle, tmp_path: Path, metric: Any) -> None:
    base = tmp_path / "t"
    table = create_table(
        base, VECTORS, record_key="id", ordering_fields="ts", version=9, index={"type": "Bucket", "buckets": 2}
    )
    table.upsert(rows_of(range(50), 1))
    for column, vector in (("v", [3.0, 1.0, 2.0]), ("d", [2.0, 1.0]), ("b", [7.0, -3.0])):
        asked = f"array({', '.join(map(str, vector))})"
        theirs = hudi.sql(
            f"SELECT id, _hudi_distance FROM hudi_vector_search('{base}', '{column}', {asked}, 7, '{metric}')"
        )
        ours = vector_search(table, column, vector, 7, metric, columns=["id"])
        assert ours["_hudi_distance"].to_pylist() == pytest.approx(sorted(theirs["_hudi_distance"].to_pylist()))
        assert set(ours["id"].to_pylist()) == set(theirs["id"].to_pylist())


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_reads_and_writes_on_its_table_after_us(hudi: HudiOracle, tmp_path: Path, kind: str) -> None:
    base = golden_table(kind, tmp_path)
    table = open_table(base)
    old = table.scan(filter="id = 'k1'").to_arrow()
    table.upsert(old.set_column(1, "ts", pa.array([3], pa.int64())), options=BUCKETS)
    grown = old.set_column(0, "id", pa.array(["k9"])).append_column("z", pa.array([[0.5]], pa.list_(pa.float32(), 1)))
    table.upsert(grown, options=BUCKETS)
    if kind == "mor":
        table.compact()
    name = _registered(hudi, f"theirs_{kind}", base)
    _run(hudi, f"UPDATE {name} SET ts = 9 WHERE id = 'k9'")
    theirs = hudi.sql(f"SELECT id, ts, v, w, d, b, z, CAST(read_blob(p) AS STRING) AS p FROM {name}")
    ours = open_table(base).scan().to_arrow()
    assert theirs is not None
    found, mine = theirs.to_pylist(), ours.drop_columns(["q"]).to_pylist()
    blobs = {row["id"]: row.pop("p") for row in found}
    kept = {row["id"]: row.pop("p") for row in mine}
    assert {row["id"]: row for row in found} == {row["id"]: row for row in mine}
    assert blobs == {key: blob and blob["data"].decode() for key, blob in kept.items()}
    assert blobs["k9"] == blobs["k1"] == "inline 1 at 2"
    assert next(row for row in mine if row["id"] == "k9") | {"v": None, "w": None, "d": None, "b": None} == {
        "id": "k9", "ts": 9, "v": None, "w": None, "d": None, "b": None, "z": [0.5]
    }  # fmt: skip


def test_hudi_takes_our_text_for_variants_and_on_spark_3_5_refuses_their_table(
    hudi: HudiOracle, tmp_path: Path
) -> None:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", version=9, index={"type": "Bucket", "buckets": 1})
    table.upsert(rows_with_variants(range(3), 1))
    with pytest.raises(HudiFailedError, match=r"VARIANT type is only supported in Spark 4\.0\+"):
        hudi.read(tmp_path / "t")
