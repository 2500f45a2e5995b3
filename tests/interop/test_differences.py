"""Where the engines differ among themselves: each engine's answer is pinned to the case that
docs/reference/compatibility.md names.

Cases 6 and 7 are also in test_golden.py and test_layouts.py, 8 in test_types.py, 9 to 11 in
test_key_generators.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.table.timeline.kept_properties import KEPT
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.foreign import foreign_table
from tests.interop.test_matrix import upsert
from tests.support import hudi_rs
from tests.support.hudi_oracle import HudiFailedError, HudiOracle

pytestmark = pytest.mark.interop

BUCKETS = 4


def groups_of(base: Path, oracle: HudiOracle) -> dict[str, set[int]]:
    """Record key → the buckets whose files hold it."""
    found: dict[str, set[int]] = {}
    rows = oracle.read(base)
    for key, file in zip(rows["_hoodie_record_key"].to_pylist(), rows["_hoodie_file_name"].to_pylist(), strict=True):
        found.setdefault(key, set()).add(int(file[:8]))
    return found


COLONS = ("a:b", "2024-01-01 10:00:00", "id:k000", "x:")


@pytest.mark.parametrize("rule", ["0.15", "1.x"])
def test_a_single_key_with_a_colon_lies_in_the_bucket_of_the_recorded_generation(
    hudis: Hudis, tmp_path: Path, rule: str
) -> None:
    """Case 1: the generation that the table names finds our rows; the other one writes every moved
    key a second time."""
    base = tmp_path / "table"
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    index = {"type": "Bucket", "buckets": BUCKETS}
    options = {"hoodie.lakeops.bucket.colon.rule": rule}
    create_table(base, schema, record_key="id", ordering_fields="ts", index=index, options=options, version=6)
    ours.write(base, "insert", pa.table({"id": COLONS, "ts": [1] * 4}))
    mine = groups_of(base, hudis["0.15.0"])
    assert all(len(buckets) == 1 for buckets in mine.values())
    # `id:k000` starts with the field's name, so 0.15 hashes what follows the colon: "k000", bucket 0 of 4.
    assert [mine[key] for key in COLONS if key != "id:k000"] == [{1}] * 3 or rule == "1.x"
    assert mine["id:k000"] == ({0} if rule == "0.15" else mine["id:k000"])

    def theirs(oracle: HudiOracle, copy: Path) -> dict[str, set[int]]:
        upsert(oracle, copy, pa.table({"id": COLONS, "ts": [2] * 4}))
        return groups_of(copy, oracle)

    found = hudis.each_on_a_copy(base, theirs)
    same, other = ("0.15.0", "1.1.1") if rule == "0.15" else ("1.1.1", "0.15.0")
    assert found[same] == mine
    moved = {key for key, buckets in found[other].items() if len(buckets) == 2}
    assert moved, "the other generation found every key: the case no longer exists"


def test_a_comma_in_a_composite_key_moves_it_between_the_generations(hudis: Hudis, tmp_path: Path) -> None:
    """Case 14: 0.15 splits the whole key at commas, 1.x at the fields only; our rule 0.15 agrees
    with 0.15.0."""
    base = tmp_path / "table"
    schema = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64())])
    create_table(
        base,
        schema,
        record_key=["id", "region"],
        ordering_fields="ts",
        index={"type": "Bucket", "buckets": 16},
        version=6,
    )
    regions = ["c,d", "e,f,g", "plain"]
    ours.write(base, "insert", pa.table({"id": ["a", "b", "c"], "region": regions, "ts": [1] * 3}))
    mine = groups_of(base, hudis["0.15.0"])

    def theirs(oracle: HudiOracle, copy: Path) -> dict[str, set[int]]:
        upsert(oracle, copy, pa.table({"id": ["a", "b", "c"], "region": regions, "ts": [2] * 3}))
        return groups_of(copy, oracle)

    found = hudis.each_on_a_copy(base, theirs)
    assert found["0.15.0"] == mine
    assert {key for key, buckets in found["1.1.1"].items() if len(buckets) == 2} == {
        "id:a,region:c,d",
        "id:b,region:e,f,g",
    }


ORDERED = pa.schema([("id", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
OLDER = pa.table({"id": ["a", "b", "b"], "v": ["older", "3000", "2000"], "ts": [500, 3000, 2000]}, schema=ORDERED)


def test_without_a_stored_payload_class_the_generations_merge_differently(hudis: Hudis, tmp_path: Path) -> None:
    """Case 2. Tables of ours store it; this one is made as a table of another writer that does
    not."""
    base = tmp_path / "table"
    foreign_table(base, pa.table({"id": ["a", "b"], "v": ["base"] * 2, "ts": [1000] * 2}, schema=ORDERED))
    assert written(hudis, base, "a") == {"0.15.0": "older", "1.1.1": "base"}
    ours.write(base, "upsert", OLDER)
    assert value(ours.read(base), "a") == "older"


def test_duplicates_of_one_batch_on_a_commit_time_table(hudis: Hudis, tmp_path: Path) -> None:
    """Case 3: 0.15.0 and we keep the larger ordering value, 1.1.1 the last row."""
    base = tmp_path / "table"
    ours.create(base, index="bucket", partitioned=False, schema=ORDERED, merge_mode="CommitTime")
    ours.write(base, "insert", pa.table({"id": ["a", "b"], "v": ["base"] * 2, "ts": [1000] * 2}, schema=ORDERED))
    assert written(hudis, base, "b") == {"0.15.0": "3000", "1.1.1": "2000"}
    ours.write(base, "upsert", OLDER)
    assert value(ours.read(base), "b") == "3000"


def written(hudis: Hudis, base: Path, key: str) -> dict[str, str]:
    """The value of `key` after each Hudi upserted `OLDER` on a copy."""

    def theirs(oracle: HudiOracle, copy: Path) -> str:
        upsert(oracle, copy, OLDER)
        return value(oracle.read(copy), key)

    return hudis.each_on_a_copy(base, theirs)


def value(rows: pa.Table, key: str) -> str:
    return {row["id"]: row["v"] for row in rows.to_pylist()}[key]


MOMENT = 1_704_070_923_456
"""Milliseconds: 2024-01-01 01:02:03.456."""


def test_an_upsert_of_0_15_damages_milliseconds_that_it_copies(hudis: Hudis, tmp_path: Path) -> None:
    """Case 4: two rows of one file, of which one is updated."""
    base = tmp_path / "table"
    kind = pa.timestamp("ms", tz="UTC")
    schema = pa.schema([("id", pa.string()), ("at", kind), ("ts", pa.int64())])
    rows = pa.table({"id": ["a", "b"], "at": pa.array([MOMENT] * 2, kind), "ts": [1, 1]}, schema=schema)
    foreign_table(base, rows, buckets=1)
    assert moments(ours.read(base)) == [MOMENT * 1000] * 2
    assert moments(hudi_rs.read(base)) == [MOMENT * 1000] * 2

    def theirs(oracle: HudiOracle, copy: Path) -> list[int]:
        assert moments(oracle.read(copy)) == [MOMENT * 1000] * 2
        upsert(oracle, copy, rows.slice(0, 1).set_column(2, "ts", pa.array([2])))
        return moments(oracle.read(copy))

    found = hudis.each_on_a_copy(base, theirs)
    assert found == {"0.15.0": [MOMENT * 1000, MOMENT], "1.1.1": [MOMENT * 1000] * 2}
    ours.write(base, "upsert", rows.slice(0, 1).set_column(2, "ts", pa.array([2])))
    assert moments(ours.read(base)) == [MOMENT * 1000] * 2


def moments(rows: pa.Table) -> list[int]:
    """The column `at` in microseconds, by `id`."""
    at = rows.sort_by("id")["at"]
    return at.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()


def test_a_timestamp_without_zone_is_for_1_x_alone(hudis: Hudis, tmp_path: Path) -> None:
    """Case 5."""
    base = tmp_path / "table"
    kind = pa.timestamp("us")
    schema = pa.schema([("id", pa.string()), ("at", kind), ("ts", pa.int64())])
    foreign_table(base, pa.table({"id": ["a"], "at": pa.array([MOMENT * 1000], kind), "ts": [1]}, schema=schema))
    assert ours.read(base)["at"].cast(pa.int64()).to_pylist() == [MOMENT * 1000]
    assert hudis["1.1.1"].read(base)["at"].cast(pa.int64()).to_pylist() == [MOMENT * 1000]
    fails(lambda: hudis["0.15.0"].read(base), "Datatype not supported")
    # hudi-rs panics, which its Python package raises as an exception that is no `Exception`.
    with pytest.raises(BaseException, match="not yet implemented"):
        hudi_rs.read(base)


def fails(call: Callable[[], object], reason: str) -> None:
    """Hudi fails, and says why."""
    with pytest.raises(HudiFailedError, match=reason):
        call()


@pytest.mark.parametrize("pattern", ["yyyy/MM", "yyyy-MM"])
def test_a_timestamp_column_of_the_timestamp_key_generator_is_hard_to_read_back(
    hudis: Hudis, tmp_path: Path, pattern: str
) -> None:
    """Case 15: 0.15.0 reads such a table only if the pattern has slashes, 1.1.1 only with values
    taken from the path."""
    base = tmp_path / "table"
    kind = pa.timestamp("us", tz="UTC")
    schema = pa.schema([("id", pa.string()), ("at", kind), ("ts", pa.int64())])
    partition_by = [{"field": "at", "type": "Timestamp", "format": pattern}]
    create_table(base, schema, record_key="id", partition_by=partition_by, ordering_fields="ts", version=6)
    ours.write(base, "insert", pa.table({"id": ["a"], "at": pa.array([MOMENT * 1000], kind), "ts": [1]}))
    assert moments(ours.read(base)) == moments(hudi_rs.read(base)) == [MOMENT * 1000]
    path = {"yyyy/MM": "2024/01", "yyyy-MM": "2024-01"}[pattern]
    if pattern == "yyyy/MM":
        assert hudis["0.15.0"].read(base)["at"].to_pylist() == [path]
    else:
        fails(lambda: hudis["0.15.0"].read(base), "ClassCastException")
    fails(lambda: hudis["1.1.1"].read(base), "NullPointerException")
    told = {"hoodie.datasource.read.extract.partition.values.from.path": "true"}
    assert hudis["1.1.1"].read(base, **told)["at"].to_pylist() == [path]


def test_hudi_refuses_another_index_than_the_one_that_we_stored(hudis: Hudis, tmp_path: Path) -> None:
    base = tmp_path / "table"
    ours.create(base, index="simple", partitioned=False, schema=ORDERED)
    ours.write(base, "insert", OLDER)

    def other(oracle: HudiOracle) -> None:
        fails(lambda: upsert(oracle, base, OLDER, **{"hoodie.index.type": "BLOOM"}), "Config conflict")

    hudis.each(other)


@pytest.mark.parametrize("blooms", [True, False], ids=["with-blooms", "without-blooms"])
def test_the_bloom_index_of_hudi_needs_bloom_filters(hudis: Hudis, tmp_path: Path, blooms: bool) -> None:
    """On a table that stores no index: with filters of ours it finds every key; without, its upsert
    fails."""
    base = tmp_path / "table"
    ours.create(base, index="simple", partitioned=False, schema=ORDERED)
    properties = base / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if not line.startswith("hoodie.index.type")]
    properties.write_text("\n".join(kept))
    (base / KEPT).unlink()
    options = {"hoodie.parquet.bloom.filter.enabled": str(blooms).lower(), "hoodie.index.type": "SIMPLE"}
    first = pa.table({"id": [f"k{n}" for n in range(50)], "v": ["a"] * 50, "ts": [1] * 50}, schema=ORDERED)
    ours.write(base, "insert", first, options=options)
    more = pa.table({"id": ["k1", "k49", "new"], "v": ["b"] * 3, "ts": [2] * 3}, schema=ORDERED)
    expected = {row["id"]: row for row in first.to_pylist()} | {row["id"]: row for row in more.to_pylist()}

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        index = {"hoodie.index.type": "BLOOM"}
        if blooms:
            upsert(oracle, copy, more, **index)
            ours.assert_all_read(copy, oracle, expected.values())
        else:
            fails(lambda: upsert(oracle, copy, more, **index), "Failed to upsert")
            ours.assert_all_read(copy, oracle, first)

    hudis.each_on_a_copy(base, go_on)


def test_hudi_leaves_inserts_into_small_files_out_of_its_change_data(hudis: Hudis, tmp_path: Path) -> None:
    """Case 16: after such an insert Hudi cannot read the changes of the table; of ours it can, and
    we read both."""
    base = tmp_path / "table"
    schema = pa.schema([("id", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
    create_table(
        base, schema, record_key="id", ordering_fields="ts", options={"hoodie.table.cdc.enabled": "true"}, version=6
    )
    ours.write(base, "insert", pa.table({"id": ["a"], "v": ["1"], "ts": [1]}, schema=schema))
    ours.write(base, "insert", pa.table({"id": ["b"], "v": ["2"], "ts": [2]}, schema=schema))
    changes = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "0",
    }

    def told(path: Path) -> list[str]:
        return [row["after"]["id"] for row in open_table(str(path)).changes().to_arrow().to_pylist()]

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        assert oracle.read(copy, **changes).num_rows == 2
        options = {
            "hoodie.table.name": "table",
            "hoodie.datasource.write.operation": "insert",
            "hoodie.metadata.enable": "false",
        }
        oracle.write(copy, pa.table({"id": ["c"], "v": ["3"], "ts": [3]}, schema=schema), options)
        fails(lambda: oracle.read(copy, **changes), "There should be a cdc log file")
        assert told(copy) == ["a", "b", "c"]

    assert told(base) == ["a", "b"]
    hudis.each_on_a_copy(base, go_on)


def test_hudi_reads_a_table_of_an_index_of_ones_own_and_does_not_write_to_it(hudis: Hudis, tmp_path: Path) -> None:
    """The name of the index is a class to Hudi, which looks for it before it writes."""
    base = tmp_path / "table"
    create_table(base, OLDER.schema, record_key="id", index={"type": "Custom", "class": "postgres"}, version=6)
    ours.write(base, "insert", OLDER)
    assert hudi_rs.read(base).num_rows == len(OLDER)

    def theirs(oracle: HudiOracle, copy: Path) -> None:
        fails(lambda: upsert(oracle, copy, OLDER), "postgres")
        assert oracle.read(copy).num_rows == len(OLDER)

    hudis.each_on_a_copy(base, theirs)
