"""The local runtime and what an ingest says of its source's columns, and of the moments at which it
runs: real jobs in processes of their own."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.table.store.clock import SystemClock
from tests.hudi_operator.runtime.test_local_runtime import ROWS, Place, assert_stalled, conditions


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def fed(place: Place, **changes: Any) -> dict[str, Any]:
    """The table with some fields of its ingest replaced."""
    (asked,) = place.table()["spec"]["ingest"]
    return place.table(ingest=[asked | changes])


def test_columns_that_the_policy_refuses_stall_the_table_until_another_takes_them(place: Place) -> None:
    place.land("1.parquet")
    place.apply(fed(place, schemaPolicy="Refuse"))
    before = place.rows()
    place.land("2.parquet", ROWS.drop(["city"]).append_column("more", pa.array([1, 2, 3], pa.int32())))
    refused = place.apply(fed(place, schemaPolicy="Refuse"))
    difference = "source file 2.parquet: the columns of the source are not the table's"
    step = "give schemaPolicy AddColumns, or correct the source. added: more (int32); missing: city (string)"
    assert_stalled(refused, "InvalidSchema", difference, step)
    assert (place.rows(), refused["status"]["ingest"][0]["consumedFiles"]) == (before, 1)
    taken = place.apply(fed(place, schemaPolicy="AddColumns"))
    assert "Stalled" not in conditions(taken)
    assert [(row["city"], row["more"]) for row in place.rows()] == [(None, 1), (None, 2), (None, 3)]


def test_files_are_taken_at_the_moments_of_the_schedule_alone(place: Place) -> None:
    class Later(SystemClock):
        def now(self) -> datetime:
            return super().now() + timedelta(hours=1)

    wanted = fed(place, mode="Scheduled", schedule="0 * * * *", timeZone="Europe/Berlin")
    place.land("1.parquet")
    first = place.apply(wanted)
    assert place.attempts() == [], "no moment has come, and nobody waits for the next"
    told = first["status"]["ingest"][0]
    assert (told["pendingFiles"], told["schedule"]["timeZone"]) == (1, "Europe/Berlin")
    done = place.apply(wanted, clock=Later())["status"]
    assert place.rows() == ROWS.to_pylist()
    schedule = done["ingest"][0]["schedule"]
    assert done["runs"][0]["batch"] == told["schedule"]["next"] == schedule["last"]
    assert schedule["next"] > schedule["last"]
