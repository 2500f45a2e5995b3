"""Copy-on-write tables of Apache Hudi 0.15.0, read by us: rows equal to what Hudi itself returned.

Two named differences (docs/reference/compatibility.md, cases 6 and 7): Hudi's Spark reader takes
partition columns from the path, we return what the file stores. Merge-on-read tables are refused by
name.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, open_table, write_hudi
from hudi_table.errors import ExpiredError, InvalidOptionError
from hudi_table.model.names import META_COLUMNS
from tests.support import golden
from tests.support.rows import canonical

STORED = {
    ("tskg", "ts"): {"1970/01/01": 1000},
    ("comp", "city"): {None: ""},
}
"""What the file stores where Hudi returned something made from the path: the named differences, as
they must be."""


def opened(name: str, folder: Path) -> HudiTable:
    return open_table(str(golden.unpack(name, folder).base))


def expected_rows(name: str, folder: Path) -> pa.Table:
    return golden.Golden(name, folder / name).rows()


@pytest.mark.parametrize("name", [n for n in golden.COPY_ON_WRITE if n not in ("tskg", "comp")])
def test_rows_and_types_equal_those_that_hudi_returned(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    expected = expected_rows(name, tmp_path)
    found = table.scan(expected.schema.names).to_arrow()
    assert found.schema == expected.schema
    assert canonical(found, columns=expected.schema.names) == canonical(expected, columns=expected.schema.names)


def test_a_timestamp_partition_column_keeps_the_value_that_was_written(tmp_path: Path) -> None:
    found = opened("tskg", tmp_path).scan(["id", "ts", "city", "name", "_hoodie_partition_path"]).to_arrow().to_pylist()
    (expected,) = expected_rows("tskg", tmp_path).to_pylist()
    assert expected["ts"] == "1970/01/01"
    assert found == [{k: 1000 if k == "ts" else expected[k] for k in found[0]}]


def test_an_empty_partition_value_keeps_being_empty(tmp_path: Path) -> None:
    names = ["id", "name", "city", "ts", "_hoodie_record_key", "_hoodie_partition_path"]
    found = {row["id"]: row for row in opened("comp", tmp_path).scan(names).to_arrow().to_pylist()}
    expected = {row["id"]: row for row in expected_rows("comp", tmp_path).select(names).to_pylist()}
    assert expected["ky"]["city"] is None
    assert found == expected | {"ky": expected["ky"] | {"city": ""}}


@pytest.mark.parametrize("name", golden.COPY_ON_WRITE)
def test_the_count_from_footers_is_the_number_of_rows(name: str, tmp_path: Path) -> None:
    assert opened(name, tmp_path).scan().count() == expected_rows(name, tmp_path).num_rows


def test_meta_columns_are_given_when_asked_for(tmp_path: Path) -> None:
    table = opened("bktcow", tmp_path)
    assert table.scan().schema.names == ["id", "name", "ts", "city"]
    assert table.scan(meta=True).schema.names == [*META_COLUMNS, "id", "name", "ts", "city"]
    assert table.scan(["_hoodie_record_key", "id"]).schema.names == ["_hoodie_record_key", "id"]
    rows = table.scan(["_hoodie_record_key", "id"]).to_arrow().to_pylist()
    assert rows
    assert all(row["_hoodie_record_key"] == row["id"] for row in rows)


def test_a_table_without_meta_fields_has_none_to_give(tmp_path: Path) -> None:
    table = opened("nometa", tmp_path)
    with pytest.raises(InvalidOptionError, match="keeps no meta columns"):
        table.scan(meta=True).to_arrow()
    with pytest.raises(InvalidOptionError, match="keeps no meta columns"):
        table.scan(["_hoodie_record_key"]).to_arrow()


def test_encoded_partition_values_prune(tmp_path: Path) -> None:
    table = opened("comp", tmp_path)
    for condition, files, ids in [
        ("city = 's f/é%:='", 1, ["k000", "k001"]),
        ("ts = 1000", 1, ["k000", "k001"]),
        ("city = 'x' and ts = 6", 1, ["a:b,c"]),
        ("city = 'x' and ts = 5", 0, []),
        ("city = ''", 2, ["ky"]),
        ("city is null", 2, ["kx"]),
        ("ts is null", 1, ["kx"]),
    ]:
        scan = table.scan(["id"], condition)
        rows = scan.to_arrow()["id"].to_pylist()
        # The default partition may hold nulls and empty values: it stays where one of these could match.
        assert (condition, scan.plan_files().num_rows, sorted(rows)) == (condition, files, ids)


class TestTimeTravel:
    """As of earlier instants, of tables whose cleaner and archiver have run."""

    def test_each_commit_shows_its_own_rows(self, tmp_path: Path) -> None:
        table = opened("sem_Def_COPY", tmp_path)
        names = {row["instant"]: self.names(table, row["instant"]) for row in table.history().to_pylist()}
        first, second, third, fourth = (names[instant] for instant in sorted(names))
        assert set(first.values()) == {"base"}
        assert len(first) == 10
        assert second["b"] == "higher1"
        assert second != third != fourth
        assert fourth == self.names(table, None)

    def names(self, table: HudiTable, instant: str | None) -> dict[str, str]:
        rows = table.scan(["id", "name"], as_of=instant).to_arrow().to_pylist()
        return {row["id"]: row["name"] for row in rows}

    def test_a_moment_between_two_commits_shows_the_earlier_one(self, tmp_path: Path) -> None:
        table = opened("sem_Def_COPY", tmp_path)
        older, newer = sorted(row["instant"] for row in table.history().to_pylist())[:2]
        between = str(int(newer) - 1)
        assert self.names(table, between) == self.names(table, older) != self.names(table, newer)

    def test_before_the_first_commit_there_are_no_rows_but_the_columns(self, tmp_path: Path) -> None:
        found = opened("bktcow", tmp_path).scan(as_of="2020-01-01").to_arrow()
        assert found.num_rows == 0
        assert found.schema.names == ["id", "name", "ts", "city"]

    def test_the_schema_is_that_of_the_moment(self, tmp_path: Path) -> None:
        table = opened("evo", tmp_path)
        first = table.history().to_pylist()[-1]["instant"]
        found = table.scan(as_of=first).to_arrow()
        assert found.to_pylist() == [{"id": 1, "name": "a", "ts": 1}]
        assert table.scan().schema.names == ["id", "nm", "ts", "extra"]

    def test_a_renamed_column_is_found_in_files_from_before_its_renaming(self, tmp_path: Path) -> None:
        table = opened("evo", tmp_path)
        added, renamed = (table.scan(as_of=time).to_arrow() for time in ("20261121092737966", "20261121092738731"))
        assert added.to_pylist() == [{"id": 1, "name": "a", "ts": 1, "extra": None}]
        assert renamed.to_pylist() == [{"id": 1, "nm": "a", "ts": 1, "extra": None}]
        assert table.scan(["id"], "nm = 'a'", as_of="20261121092738731").to_arrow().num_rows == 1

    def test_files_with_former_column_names_are_written_on_under_the_new_ones(self, tmp_path: Path) -> None:
        base = golden.unpack("evo", tmp_path).base
        # The table as it was between the renaming and the write that brought its file to the new name.
        for name in ("20261121092739632.commit", "20261121092739632.inflight", "20261121092739632.commit.requested"):
            (base / ".hoodie" / name).unlink()
        for path in base.glob("*_20261121092739632.parquet"):
            path.unlink()
        rows = pa.table({"id": pa.array([2], pa.int32()), "nm": ["b"], "ts": [2], "extra": ["x"]})
        write_hudi(str(base), rows, options={"hoodie.index.type": "SIMPLE"})
        found = open_table(str(base)).scan(["nm", "extra"]).to_arrow().to_pylist()
        assert found == [{"nm": "a", "extra": None}, {"nm": "b", "extra": "x"}]

    def test_a_replaced_group_is_read_again_from_before_its_replacement(self, tmp_path: Path) -> None:
        table = opened("clust", tmp_path)
        before = table.scan(as_of="20261121091211281").to_arrow()
        assert before.num_rows == 8
        assert table.scan().count() == 13

    def test_a_moment_whose_files_were_cleaned_is_refused_and_the_clean_named(self, tmp_path: Path) -> None:
        table = opened("clust", tmp_path)
        with pytest.raises(ExpiredError, match="the clean 20261121091235137 deleted files"):
            table.scan(as_of="20261121091217323").to_arrow()

    def test_a_moment_in_the_archived_timeline_is_refused(self, tmp_path: Path) -> None:
        table = opened("arch", tmp_path)
        with pytest.raises(ExpiredError, match="archived part of the timeline"):
            table.scan(as_of="20261121091530000").to_arrow()
        with pytest.raises(ExpiredError, match="the clean 20261121091537909 deleted files"):
            table.scan(as_of="20261121091534738").to_arrow()
        found = table.scan(["name"], as_of="20261121091535662").to_arrow()
        assert sorted(found["name"].to_pylist()) == ["name0_7", "name1_7", "name2_7"]

    def test_a_table_opened_as_of_an_instant_reads_as_of_it(self, tmp_path: Path) -> None:
        base = golden.unpack("sem_Def_COPY", tmp_path).base
        first = min(open_table(str(base)).history()["instant"].to_pylist())
        table = open_table(str(base), as_of=first)
        assert set(table.scan().to_arrow()["name"].to_pylist()) == {"base"}
        assert table.history().num_rows == 1
        assert set(table.files()["instant"].to_pylist()) == {first}
