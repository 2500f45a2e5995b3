"""The record index by partition across engines: one that we built is used and written on by Hudi
1.1.1, its own by us; 0.15.0 keeps away.

Matrix: {copy-on-write of ours, merge-on-read of Hudi's}: writes of both sides in turns, each
finding keys by the index that the other has written to last: updates, keys in several partitions,
new partitions of either side (one with a name that is escaped), deletes, a compaction of the
metadata table by either. After each turn no key is doubled in a partition, and the index agrees
with a scan. 0.15.0: refuses a table that stores the index, and drops the index of one that does
not. Omitted: the global one (`test_record_index.py`); batches of Hudi's that hold a key in two
partitions, of which 1.1.1 writes the row of one into the file of the other (measured, on tables of
its own too).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.options.write_options import PARTITION_SHARDS, PARTITIONED_RECORD_INDEX_ENABLE
from hudi_table.model.table.config import TableType
from tests.hudi_table.metadata.test_partitioned_record_index import counts, placed, stored_places
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import rows
from tests.interop.test_metadata_table import written_by_hudi
from tests.interop.test_record_index import moved
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.interop

INDEX = {"hoodie.index.type": "RECORD_LEVEL_INDEX"}
PLACE = ("id", "city")
ENABLE = {PARTITIONED_RECORD_INDEX_ENABLE: "true"}


class ByPartition:
    """What a table must hold: rows by key and partition."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], dict[str, object]] = {}

    def apply(self, operation: str, data: pa.Table) -> None:
        """Change the rows as `operation` with `data` does."""
        for row in data.to_pylist():
            place = (row["id"], row["city"])
            if operation == "delete":
                self.found.pop(place, None)
            else:
                self.found[place] = row

    def assert_holds(self, base: Path, where: str) -> None:
        """Every key is once in each of its partitions, with its newest row, and the index says
        where."""
        assert_same_rows(ours.read(base), list(self.found.values()), key=PLACE, of=where)
        table = open_table(str(base))
        assert "record_index" in read_partitions(table.context).ready, where
        places, there = placed(table), stored_places(table)
        if table.context.config.type is TableType.MERGE_ON_READ:
            # Where event time decides between logs it may tell of keys that are gone.
            places = {place: places[place] for place in places if place in there}
        assert places == there, where
        assert differences(table.context) == [], where


def by_hudi(oracle: HudiOracle, base: Path, kind: str, operation: str, data: pa.Table, **more: str) -> None:
    """A write of Hudi's that finds keys by the index."""
    written_by_hudi(oracle, base, kind, operation, data, **(INDEX | ENABLE | more))


def test_one_that_we_built_is_used_and_written_on_by_hudi(tmp_path: Path, hudis: Hudis) -> None:
    base, model, oracle = tmp_path / "t", ByPartition(), hudis["1.1.1"]
    ours.create(base, index="partitioned-record", partitioned=True)
    for operation, data in (("insert", rows(range(12), 1)), ("upsert", rows(range(9, 15), 2))):
        # Compacted after each, so that the first write of Hudi finds a compaction of ours, and the keys in base files.
        ours.write(base, operation, data, options={"hoodie.metadata.compact.max.delta.commits": "1"})
        model.apply(operation, data)
    data = moved(rows(range(3), 3), "new/part-1")
    ours.write(base, "upsert", data)
    model.apply("upsert", data)
    model.assert_holds(base, "ours")
    turns = (
        ("upsert", pa.concat_tables([rows(range(10, 18), 4), moved(rows(range(1, 5), 4), "new/part-1")])),
        ("upsert", moved(rows(range(3), 5), "of_hudi-1")),
        ("delete", rows(range(5, 8), 6)),
    )
    for number, (operation, data) in enumerate(turns):
        # Compacted by Hudi after the second one, also what we began.
        deltas = {"hoodie.metadata.compact.max.delta.commits": "1"} if number == 1 else {}
        by_hudi(oracle, base, "copy-on-write", operation, data, **deltas)
        model.apply(operation, data)
        model.assert_holds(base, f"write {number} of Hudi's")
    mine = (
        ("upsert", pa.concat_tables([rows(range(2, 20), 7), moved(rows(range(1, 5), 7), "of_hudi-1")])),
        ("delete", moved(rows(range(2), 8), "of_hudi-1")),
    )
    for operation, data in mine:
        ours.write(base, operation, data, options={"hoodie.metadata.compact.max.delta.commits": "1"})
        model.apply(operation, data)
    model.assert_holds(base, "our writes after them")
    data = pa.concat_tables([rows(range(6, 24, 3), 9), moved(rows(range(4), 9), "of_hudi-1")])
    by_hudi(oracle, base, "copy-on-write", "upsert", data)
    model.apply("upsert", data)
    model.assert_holds(base, "Hudi's after ours")
    assert_same_rows(oracle.read(base, hoodie__metadata__enable="true"), list(model.found.values()), key=PLACE)


def test_one_that_hudi_built_is_used_and_written_on_by_us(tmp_path: Path, hudis: Hudis) -> None:
    base, model, oracle = tmp_path / "t", ByPartition(), hudis["1.1.1"]
    for operation, data in (("upsert", rows(range(12), 1)), ("upsert", rows(range(9, 15), 2))):
        by_hudi(oracle, base, "merge-on-read", operation, data, **{PARTITION_SHARDS: "2"})
        model.apply(operation, data)
    model.assert_holds(base, "Hudi's")
    assert set(counts(open_table(str(base))).values()) == {2}
    turns = (
        ("upsert", rows(range(10, 20), 3)),
        ("delete", rows(range(4), 4)),
        ("upsert", moved(rows(range(5, 9), 5), "ours/new")),
    )
    for operation, data in turns:
        ours.write(base, operation, data, options=INDEX)
        model.apply(operation, data)
    model.assert_holds(base, "our writes after them")
    data = pa.concat_tables([rows(range(14, 22), 6), moved(rows(range(5, 11), 6), "ours/new")])
    by_hudi(oracle, base, "merge-on-read", "upsert", data)
    model.apply("upsert", data)
    model.assert_holds(base, "Hudi's after ours")
    assert_same_rows(oracle.read(base, hoodie__metadata__enable="true"), list(model.found.values()), key=PLACE)


def test_hudi_015_refuses_a_table_that_stores_it_and_drops_that_of_another(tmp_path: Path, hudis: Hudis) -> None:
    base, other, old = tmp_path / "t", tmp_path / "other" / "t", hudis["0.15.0"]
    data = rows(range(12), 1)
    ours.create(base, index="partitioned-record", partitioned=True)
    ours.write(base, "insert", data)
    # The index that the table stores is taken for an option, which its enumeration does not have.
    with pytest.raises(HudiFailedError, match="RECORD_LEVEL_INDEX"):
        written_by_hudi(old, base, "copy-on-write", "upsert", rows(range(3), 2), **INDEX)
    for name in ("SIMPLE", "RECORD_INDEX"):
        more = {"hoodie.index.type": name, "hoodie.metadata.record.index.enable": "true"}
        with pytest.raises(HudiFailedError, match="Config conflict"):
            written_by_hudi(old, base, "copy-on-write", "upsert", rows(range(3), 2), **more)
    assert_same_rows(ours.read(base), data.to_pylist())
    assert_same_rows(old.read(base, hoodie__metadata__enable="true"), data.to_pylist())
    ours.create(other, index="simple", partitioned=True)
    ours.write(other, "insert", data, options={"hoodie.metadata.enable": "true"} | ENABLE)
    assert "record_index" in read_partitions(open_table(str(other)).context).ready
    written_by_hudi(old, other, "copy-on-write", "upsert", rows(range(3), 2))
    assert set(read_partitions(open_table(str(other)).context).all) == {"files"}
    ours.write(other, "upsert", rows(range(2), 3))
    assert len(ours.read(other)) == len(data)
