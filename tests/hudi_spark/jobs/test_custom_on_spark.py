"""A source of a package that splits what waits, read in tasks of Spark: the table is the one that a
single process makes, each position is taken once, and what has no parts is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hudi_table.api import open_table
from hudi_table.sources.custom import GROUP
from tests.support.index_package import shipped_package
from tests.support.polled import Polled

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session_as_it_was")]

PACKAGE = """
import pyarrow as pa


class Numbers:
    \"\"\"Whole numbers up to one, ten at most a position, in parts of three.\"\"\"

    def __init__(self, options):
        self.upto = int(options["upto"])

    def split(self, position):
        begin = int(position or 0)
        end = min(begin + 10, self.upto)
        if begin >= end:
            return None
        return [f"{at}-{min(at + 3, end)}" for at in range(begin, end, 3)], str(end)

    def part(self, text):
        begin, end = map(int, text.split("-"))
        return self.rows(range(begin, end))

    def rows(self, numbers):
        return pa.table({"id": [f"k{n}" for n in numbers], "n": pa.array(list(numbers), pa.int64())})

    def read(self, position):
        found = self.split(position)
        return None if found is None else (self.rows(range(int(position or 0), int(found[1]))), found[1])


class Whole(Numbers):
    split = None


class Torn(Numbers):
    def part(self, text):
        rows = super().part(text)
        return rows if text.startswith("0-") else rows.rename_columns(["key", "n"])


class Away(Numbers):
    def part(self, text):
        if not text.startswith("0-"):
            raise ConnectionError("nobody listens")
        return super().part(text)


class Mute(Numbers):
    def split(self, position):
        return [], "7"
"""
NAMES = ("Numbers", "Whole", "Torn", "Away", "Mute")


@pytest.fixture(autouse=True, scope="module")
def package(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """In the driver, and in every task."""
    folder = tmp_path_factory.mktemp("parts")
    entries = "\n".join(f"{name.lower()} = parts_package:{name}" for name in NAMES)
    with shipped_package(spark, folder, "parts_package", PACKAGE, entries, GROUP):
        yield


def of(folder: Path, name: str = "numbers", engine: str = "Spark", upto: int = 25) -> Polled:
    folder.mkdir(exist_ok=True)
    source = {"type": "Custom", "custom": {"name": name, "options": {"upto": str(upto)}}}
    return Polled(folder, source, lambda _: None, "Insert", engine=engine)


def test_the_table_is_the_one_that_a_single_process_makes(tmp_path: Path) -> None:
    here, tasks = of(tmp_path / "here", engine="Local"), of(tmp_path / "tasks")
    chain: list[dict[str, Any]] = [{"sql": "SELECT id, n + 1 AS n FROM source"}]
    for feed in (here, tasks):
        done = feed.run(transform=chain)
        assert (done.outcome, done.figures["commits"], done.figures["recordsInserted"]) == ("Succeeded", 3, 25)
    assert tasks.numbers() == here.numbers() == list(range(1, 26))
    assert tasks.run(transform=chain).outcome == "NothingToDo"


def test_either_engine_goes_on_where_the_other_was(tmp_path: Path) -> None:
    assert of(tmp_path, upto=12).run().figures["recordsInserted"] == 12
    local = of(tmp_path, engine="Local", upto=20)
    local.runs = 1
    assert local.run().figures["recordsInserted"] == 8
    tasks = of(tmp_path, upto=23)
    tasks.runs = 2
    assert tasks.run().figures["recordsInserted"] == 3
    assert tasks.numbers() == list(range(23))


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("whole", "InvalidRequest", "source 'whole' has no methods split(position) and part(text)"),
        ("torn", "InvalidSchema", "source 'torn' gives columns key, n in one part and id, n in another"),
        ("away", "Unavailable", "source 'away': ConnectionError: nobody listens"),
        ("mute", "InvalidRequest", "source 'mute' splits what waits into []: it is to give texts, at least one"),
    ],
)
def test_what_is_wrong_with_a_package_is_said_by_its_name_and_leaves_nothing(
    tmp_path: Path, name: str, error: str, said: str
) -> None:
    failed = of(tmp_path, name).run()
    assert (failed.error_class, said in failed.message) == (error, True), failed.message
    assert not (tmp_path / "lake" / "orders" / ".hoodie" / "hoodie.properties").exists()


def test_rows_whose_last_one_wins_are_not_read_at_once(tmp_path: Path) -> None:
    feed = of(tmp_path)
    feed.operation = "Upsert"
    refused = feed.run()
    assert (refused.error_class, "give orderingFields" in refused.message) == ("InvalidRequest", True)
    feed.table = {"orderingFields": ["n"], "mergeMode": "EventTime"}
    assert feed.run().figures["recordsInserted"] == 25
    assert len(open_table(feed.location).scan(["id"]).to_arrow()) == 25


def test_rows_that_do_not_meet_an_expectation_go_aside(tmp_path: Path) -> None:
    feed = of(tmp_path)
    rules = [
        {"name": "small", "sql": "n < 24", "onFail": "Quarantine"},
        {"name": "some", "sql": "n > 0", "onFail": "Drop"},
    ]
    done = feed.run(expectations=rules, onUndecodable="Fail", maxErrorRatio=1.0)
    assert (done.figures["recordsRefused"], done.figures["recordsDropped"]) == (1, 1), done
    assert feed.numbers() == list(range(1, 24))
    aside = open_table(f"{feed.location}_row_errors").scan().to_arrow().to_pylist()
    assert [(row["place"], row["rule"]) for row in aside] == [("position 25", "small")]
