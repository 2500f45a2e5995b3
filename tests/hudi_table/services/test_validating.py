"""Pre-commit validators: queries that a write has to pass before it is decided."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.errors import InvalidDataError, InvalidOptionError, InvalidRequestError
from hudi_table.services.validating.queries import Kind
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.instants import local_now
from tests.support.written import INDEXES, SCHEMA, contents, rows

PACKAGE = "org.apache.hudi.client.validator."
KINDS = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
VERSIONS = pytest.mark.parametrize("version", [6, 9])


def table_of(tmp_path: Path, **more: Any) -> HudiTable:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", index=INDEXES["bucket"], **more)
    table.upsert(rows(("a", "x", 1), ("b", "x", 2), ("c", "y", 3)))
    return table


OPTIONS = {
    Kind.EQUALITY: "hoodie.precommit.validators.equality.sql.queries",
    Kind.INEQUALITY: "hoodie.precommit.validators.inequality.sql.queries",
    Kind.SINGLE_VALUE: "hoodie.precommit.validators.single.value.sql.queries",
}


def asking(kind: Kind, *queries: str) -> dict[str, str]:
    return {"hoodie.precommit.validators": PACKAGE + kind.value, OPTIONS[kind]: ";".join(queries)}


SAME_COUNT = asking(Kind.EQUALITY, "select count(*) from <TABLE_NAME>")
OTHER_COUNT = asking(Kind.INEQUALITY, "select count(*) from <TABLE_NAME>")
NO_NEGATIVE = asking(Kind.SINGLE_VALUE, "select count(*) from <TABLE_NAME> where value < 0#0")


@pytest.mark.thinned("pairs")
@KINDS
@VERSIONS
@pytest.mark.parametrize(
    ("asked", "passes", "fails", "why"),
    [
        (SAME_COUNT, ("b", "x", 9), ("n", "x", 9), "is to give the same after the write: before 2, after 3"),
        (OTHER_COUNT, ("n", "x", 9), ("b", "x", 9), "is to give something else after the write: before 2, after 2"),
        (NO_NEGATIVE, ("b", "x", 9), ("b", "x", -9), "gives 1 after the write"),
    ],
    ids=["equality", "inequality", "single value"],
)  # fmt: skip
def test_a_write_that_does_not_pass_is_not_there(
    tmp_path: Path, kind: str, version: int, asked: dict[str, str], passes: Any, fails: Any, why: str
) -> None:
    table = table_of(tmp_path, type=kind, version=version)
    before, commits = contents(table), load_timeline(table.context).commits
    with pytest.raises(InvalidDataError, match=why):
        table.upsert(rows(fails), options=asked)
    assert (contents(table), load_timeline(table.context).commits) == (before, commits)
    assert table.upsert(rows(passes), options=asked).instant
    assert passes in contents(table)
    assert table.doctor(keys=True) == ()


@KINDS
def test_a_query_sees_the_changed_partitions_as_they_will_be(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, type=kind)
    table.upsert(rows(("a", "x", 5)))
    total = "select count(distinct id), max(value), min(city), max(city) from <TABLE_NAME>"
    with pytest.raises(InvalidDataError, match="before 2 5 x x, after 3 7 x x;"):
        table.upsert(rows(("n", "x", 7)), options=asking(Kind.EQUALITY, total))
    newest = asking(Kind.SINGLE_VALUE, "select max(id) from <TABLE_NAME>#z")
    table.write(rows(("z", "y", 4)), operation="insert_overwrite", options=newest)
    gone = asking(Kind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#0")
    table.write(None, operation="delete_partition", partitions=["y"], options=gone)
    assert {row[1] for row in contents(table)} == {"x"}


def test_a_delete_and_hudis_own_columns_are_seen(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with pytest.raises(InvalidDataError, match="gives 'a' after the write"):
        table.delete(
            rows(("b", "x", 0)), options=asking(Kind.SINGLE_VALUE, "select max(_hoodie_record_key) from <TABLE_NAME>#b")
        )
    assert len(contents(table)) == 3


def test_a_first_write_has_nothing_before_it(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", index=INDEXES["bucket"])
    with pytest.raises(InvalidDataError, match="before 0, after 1"):
        table.upsert(rows(("a", "x", 1)), options=SAME_COUNT)
    assert contents(table) == []


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"hoodie.precommit.validators": "com.example.Mine"}, InvalidOptionError, "'com.example.Mine', a class of Java"),
        (asking(Kind.EQUALITY, ""), InvalidOptionError, "equality.sql.queries has no query"),
        (
            {Kind.EQUALITY.option: "select 1 from <TABLE_NAME>"},
            InvalidOptionError,
            "does not name org.apache.hudi.client.validator.SqlQueryEqualityPreCommitValidator",
        ),
        (asking(Kind.SINGLE_VALUE, "select 1 from <TABLE_NAME>"), InvalidOptionError, "give a query, # and the value"),
        (asking(Kind.EQUALITY, "select 1"), InvalidOptionError, "asks nothing of <TABLE_NAME>"),
        (asking(Kind.EQUALITY, "drop table <TABLE_NAME>"), InvalidRequestError, "equality.sql.queries, 'drop table"),
        (asking(Kind.EQUALITY, "select fare from <TABLE_NAME>"), InvalidRequestError, "equality.sql.queries, 'select fare.*fare"),
    ],
    ids=["class", "no query", "no class", "no value", "no table", "no select", "no column"],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, str], error: type[Exception], why: str
) -> None:
    table = table_of(tmp_path)
    files = sorted(path for path in tmp_path.rglob("*"))
    with pytest.raises(error, match=why):
        table.upsert(rows(("a", "x", 9)), options=options)
    assert sorted(path for path in tmp_path.rglob("*")) == files


def test_what_expires_behind_a_write_is_not_held_against_its_validators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path)
    monkeypatch.setattr("hudi_table.services.cleaning.ttl.local_now", lambda ctx: local_now(ctx) + timedelta(days=3))
    expiring = {"hoodie.partition.ttl.inline": "true", "hoodie.partition.ttl.strategy.days.retain": "2"}
    table.upsert(rows(("c", "y", 4)), options=SAME_COUNT | expiring)
    assert contents(table) == []
