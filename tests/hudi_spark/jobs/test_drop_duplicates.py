"""`dropDuplicates` of an ingest that inserts: a key is in the table once, whoever brought it first;
other ingests of the table do as they did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table import open_table
from hudi_table.sources.custom import GROUP
from tests.support import polled
from tests.support.index_package import written_package
from tests.support.polled import Polled

NO_COPIES = {"dropDuplicates": True}


def land(feed: Polled, name: str, *rows: tuple[str, int]) -> None:
    table = pa.table({"id": [key for key, _ in rows], "n": pa.array([n for _, n in rows], pa.int64())})
    (feed.folder / "landing" / name).write_bytes(polled.parquet(table))


def rows(feed: Polled) -> list[tuple[str, int]]:
    found = open_table(feed.location).scan(["id", "n"]).to_arrow().to_pylist()
    return sorted((row["id"], row["n"]) for row in found)


@pytest.mark.parametrize("index", ["Simple", "Bloom", "Bucket", "RecordIndex"])
def test_a_key_that_is_stored_stays_as_it_is_and_one_that_comes_twice_comes_once(tmp_path: Path, index: str) -> None:
    feed = polled.of_folder(tmp_path)
    feed.table = {"index": {"type": index, **({"buckets": 2} if index == "Bucket" else {})}}
    land(feed, "1.parquet", ("a", 1), ("b", 1))
    assert feed.run(**NO_COPIES).figures["recordsInserted"] == 2
    land(feed, "2.parquet", ("b", 2), ("c", 2), ("c", 2))
    done = feed.run(**NO_COPIES)
    assert (done.outcome, done.figures["recordsInserted"]) == ("Succeeded", 1), done.message
    assert rows(feed) == [("a", 1), ("b", 1), ("c", 2)]
    land(feed, "3.parquet", ("a", 3))
    assert feed.run(**NO_COPIES).figures["filesConsumed"] == 1, "a commit that writes no row holds the checkpoint"
    assert feed.run(**NO_COPIES).outcome == "NothingToDo"
    assert rows(feed) == [("a", 1), ("b", 1), ("c", 2)]


def test_without_it_an_insert_looks_for_no_keys(tmp_path: Path) -> None:
    feed = polled.of_folder(tmp_path)
    land(feed, "1.parquet", ("a", 1), ("a", 2))
    feed.run()
    land(feed, "2.parquet", ("a", 3))
    feed.run()
    assert rows(feed) == [("a", 1), ("a", 2), ("a", 3)]


def test_it_wins_over_what_the_options_of_the_table_say(tmp_path: Path) -> None:
    feed = polled.of_folder(tmp_path)
    feed.table = {"options": {"hoodie.datasource.insert.dup.policy": "fail"}}
    land(feed, "1.parquet", ("a", 1))
    feed.run(**NO_COPIES)
    land(feed, "2.parquet", ("a", 2), ("b", 2))
    assert feed.run().error_class == "InvalidData"
    assert feed.run(**NO_COPIES).outcome == "Succeeded"
    assert rows(feed) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("operation", ["Upsert", "BulkInsert"])
def test_another_operation_is_refused_before_a_table_is_made(tmp_path: Path, operation: str) -> None:
    feed = polled.of_folder(tmp_path)
    feed.operation = operation
    land(feed, "1.parquet", ("a", 1))
    refused = feed.run(**NO_COPIES)
    assert refused.error_class == "InvalidRequest"
    assert "dropDuplicates goes with operation Insert" in refused.message
    assert not (tmp_path / "lake" / "orders" / ".hoodie").exists()


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    with written_package(tmp_path / "package", "lines_package", polled.PACKAGE, "lines = lines_package:Lines", GROUP):
        yield


def test_a_source_that_is_set_back_brings_no_key_twice(tmp_path: Path, package: None) -> None:
    feed = polled.of_package(tmp_path)
    feed.put(range(10))
    feed.run(**NO_COPIES)
    feed.put(range(5, 15))
    feed.run(**NO_COPIES)
    assert feed.numbers() == list(range(15))
