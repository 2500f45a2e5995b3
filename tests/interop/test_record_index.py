"""The record-level index across engines: one that we built is used and written on by both versions
of Hudi, theirs by us.

Matrix: {0.15.0, 1.1.1} × {copy-on-write of ours, merge-on-read of Hudi's}: writes of both sides in
turns, each finding keys by the index that the other has written to last, with updates, inserts,
deletes, rows that name another partition, and a compaction of the metadata table by either. After
each turn no key is doubled, and the index agrees with a scan. A row behind a flagged delete of ours
and a clustering of 1.1.1's. Omitted: the index by partition, which 1.1.1 has too
(`test_partitioned_record_index.py`), the partitions `files`, `column_stats` and `bloom_filters`
(`test_metadata_table.py`).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.names import IS_DELETED
from hudi_table.model.table.config import TableType
from tests.hudi_table.metadata.test_indexes import located, stored
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.disorder import unflagged, with_flags
from tests.interop.model import SCHEMA, Model, rows
from tests.interop.test_metadata_table import written_by_hudi
from tests.interop.turns import Kind, Them, Us
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import assert_same_rows

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

INDEX = {"hoodie.index.type": "RECORD_INDEX"}
MOVES = {"hoodie.record.index.update.partition.path": "true"}


def by_hudi(oracle: HudiOracle, base: Path, kind: str, operation: str, data: pa.Table, **more: str) -> None:
    """A write of Hudi's that finds keys by the index."""
    enable = (
        "hoodie.metadata.global.record.level.index.enable" if oracle.is_1x else "hoodie.metadata.record.index.enable"
    )
    written_by_hudi(oracle, base, kind, operation, data, **(INDEX | {enable: "true"} | more))


def moved(data: pa.Table, city: str) -> pa.Table:
    """The rows in another city."""
    return data.set_column(data.column_names.index("city"), "city", pa.array([city] * len(data), pa.string()))


def assert_one_place_each(base: Path, model: Model, where: str) -> None:
    """Every key is there once, with its newest row, and the index says where. Where event time
    decides between logs it may tell of keys that are gone, too."""
    assert_same_rows(ours.read(base), model.rows(), of=where)
    table = open_table(str(base))
    assert "record_index" in read_partitions(table.context).ready, where
    places, rows_there = located(table), stored(table)
    if table.context.config.type is TableType.MERGE_ON_READ:
        places = {key: places[key] for key in places if key in rows_there}
    assert places == rows_there, where
    assert differences(table.context) == [], where


def test_one_that_we_built_is_used_and_written_on_by_both_versions(tmp_path: Path, hudis: Hudis) -> None:
    base, model = tmp_path / "t", Model(partitioned=True)
    ours.create(base, index="record", partitioned=True, options=MOVES)
    for operation, numbers, version in (("insert", range(24), 1), ("upsert", range(18, 30), 2)):
        data = rows(numbers, version)
        # Compacted after each, so that the first write of Hudi finds a compaction of ours, and the keys in base files.
        ours.write(base, operation, data, options={"hoodie.metadata.compact.max.delta.commits": "1"})
        model.apply(operation, data)
    assert_one_place_each(base, model, "ours")

    def on(oracle: HudiOracle, copy: Path) -> None:
        mine = model.copy()
        turns = (
            ("upsert", rows(range(20, 34), 3)),
            ("upsert", moved(rows(range(3), 4), "sf")),
            ("delete", rows(range(5, 8), 5)),
        )
        for operation, data in turns:
            by_hudi(oracle, copy, "copy-on-write", operation, data)
            mine.apply(operation, data)
        assert_one_place_each(copy, mine, "Hudi's writes")
        for operation, data in (("upsert", moved(rows(range(2, 40), 6), "par")), ("delete", rows(range(9, 12), 7))):
            ours.write(copy, operation, data)
            mine.apply(operation, data)
        assert_one_place_each(copy, mine, "our writes after them")
        data = rows(range(0, 44, 3), 8)
        by_hudi(oracle, copy, "copy-on-write", "upsert", data)
        mine.apply("upsert", data)
        assert_one_place_each(copy, mine, "Hudi's after ours")
        assert_same_rows(oracle.read(copy, hoodie__metadata__enable="true"), mine.rows())

    hudis.each_on_a_copy(base, on)


def test_one_that_hudi_built_is_used_and_written_on_by_us(tmp_path: Path, hudis: Hudis) -> None:
    def on(oracle: HudiOracle) -> None:
        base, model = tmp_path / oracle.version, Model(partitioned=True)
        for operation, numbers, version in (("insert", range(24), 1), ("upsert", range(18, 30), 2)):
            data = rows(numbers, version)
            by_hudi(oracle, base, "merge-on-read", operation, data)
            model.apply(operation, data)
        assert_one_place_each(base, model, "Hudi's")
        # Without the option a row stays in the partition in which its key is, in both engines.
        for operation, data in (("upsert", rows(range(10, 36), 3)), ("delete", rows(range(4), 4))):
            ours.write(base, operation, data, options=INDEX)
            model.apply(operation, data)
        stays = moved(rows(range(5, 7), 5), "sf")
        ours.write(base, "upsert", stays, options=INDEX)
        model.apply("upsert", stays)
        assert_one_place_each(base, model, "our writes after them")
        places = located(open_table(str(base)))
        assert [places[key][0] for key in stays["id"].to_pylist()] == rows(range(5, 7), 1)["city"].to_pylist()
        data = rows(range(30, 40), 6)
        by_hudi(oracle, base, "merge-on-read", "upsert", data)
        model.apply("upsert", data)
        assert_one_place_each(base, model, "Hudi's after ours")

    hudis.each(on)


@pytest.mark.by_turns("1.1.1")
@pytest.mark.parametrize("version", [8, 9])
def test_a_key_that_a_flagged_delete_of_ours_took_comes_back_behind_a_clustering_of_hudis(
    tmp_path: Path, hudis: Hudis, version: int
) -> None:
    """Its clustering keeps what the index says of keys without a row, and its next row goes where
    the index says: to a file group that is hidden."""
    base, kind = tmp_path / "table", Kind(version, "MergeOnRead", "record", "plain", True, "us")
    us, them = Us(base, kind), Them(base, kind, hudis["1.1.1"])
    schema = with_flags(SCHEMA)
    us.create(schema)
    taken = [row | {IS_DELETED: True} for row in rows([3], 2).to_pylist()]
    with them:
        us.write("insert", unflagged(rows(range(12), 1, schema)))
        us.write("upsert", pa.Table.from_pylist(taken, schema=schema))
        them.plan("clustering")
        (instant,) = open_table(base).pending_clusterings()
        them.execute("clustering", instant)
        them.write("upsert", unflagged(rows([3], 3, schema)))
        found = ours.read(base)
        assert_same_rows(them.read(), found, columns=found.column_names)
    assert len(found) == 12
