"""The rows of a batch that tasks of Spark make once, where the table's columns are those of every
range, and again where they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_spark.jobs.ingests.kafka import kept, tasks
from tests.streams.test_spark_once import Pair
from tests.support.feeds import row
from tests.support.kafka import Broker

LOGS: dict[str, Any] = {"type": "MergeOnRead", "orderingFields": ["n"]}
SOUND = {
    "onUndecodable": "Quarantine",
    "maxErrorRatio": 0.5,
    "expectations": [{"name": "sound", "sql": "fare <> 7", "onFail": "Quarantine"}],
}


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What tasks did of each batch: `read` it, `make` its rows again, and `pack` them for the tasks
    that write."""
    told: list[str] = []
    keep, packed = tasks.SparkWay._keep, kept.KeptRows.packed

    def keeping(self: Any, frame: Any) -> Any:
        told.append("make" if told[-1:] == ["read"] else "read")
        return keep(self, frame)

    def packing(self: Any, *given: Any) -> Any:
        told.append("pack")
        return packed(self, *given)

    monkeypatch.setattr(tasks.SparkWay, "_keep", keeping)
    monkeypatch.setattr(kept.KeptRows, "packed", packing)
    return told


def test_rows_of_the_columns_of_the_table_are_made_once(broker: Broker, tmp_path: Path, times: list[str]) -> None:
    pair = Pair(broker, tmp_path, table=LOGS)
    for first, did in ((0, ["read", "make", "pack"]), (20, ["read", "pack"]), (40, ["read", "pack"])):
        broker.produce(pair.topic, [row(i, fare=i % 9, deep={"a": [i]}) for i in range(first, first + 40)])
        assert [each.figures["messagesRead"] for each in pair.run()] == [40, 40]
        assert times == did
        pair.assert_equal()
        times.clear()


@pytest.mark.thinned("values")
@pytest.mark.parametrize("work", [{}, SOUND], ids=["plain", "expectations"])
@pytest.mark.parametrize("more", [{"city": "x"}, {"deep": {"a": [1], "b": 2}}], ids=["column", "field"])
def test_a_column_that_one_range_has_alone_is_null_in_the_rows_of_the_others(
    broker: Broker, tmp_path: Path, times: list[str], work: dict[str, Any], more: dict[str, Any]
) -> None:
    pair = Pair(broker, tmp_path)
    broker.produce(pair.topic, [row(i, fare=i % 9, deep={"a": [i]}) for i in range(20)])
    pair.run(work)
    times.clear()
    broker.produce(pair.topic, [row(i, fare=i % 9, deep={"a": [i]}) for i in range(10, 30)], partition=0)
    broker.produce(
        pair.topic, [row(i, **{"fare": i % 9, "deep": {"a": [i]}, **more}) for i in range(30, 50)], partition=1
    )
    done = pair.run(work)
    assert done[1].outcome == "Succeeded", done[1].message
    assert done[1].figures.get("recordsRefused", 0) == done[0].figures.get("recordsRefused", 0) == (4 if work else 0)
    assert times[:2] == ["read", "make"]
    pair.assert_equal()


def test_a_range_of_which_every_row_is_refused_is_told_with_the_others(
    broker: Broker, tmp_path: Path, times: list[str]
) -> None:
    pair = Pair(broker, tmp_path)
    broker.produce(pair.topic, [row(i, fare=1) for i in range(20)])
    pair.run(SOUND)
    for more in ({}, {"city": "x"}):
        times.clear()
        broker.produce(pair.topic, [row(i, fare=7) for i in range(20, 25)], partition=0)
        broker.produce(pair.topic, [row(i, fare=2, **more) for i in range(30, 60)], partition=1)
        done = pair.run(SOUND)
        assert [each.figures.get("recordsRefused", 0) for each in done] == [5, 5], done[1].message
        assert ("make" in times) == bool(more)
        pair.assert_equal()
