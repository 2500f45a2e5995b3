"""Error tables that one bad message after the other fills: what lies there, and what a commit asks
of the store, stay bounded."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_spark.jobs.sifting import error_tables
from hudi_spark.jobs.sifting.error_tables import ERRORS, keep_refused
from hudi_table.api import create_table, open_table
from hudi_table.arguments import TableTypeName
from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.sources.kafka.refusing import ERROR_SCHEMA
from tests.support.waves import running_waves

COMMITS, ROUNDS = 8, 10
"""From one upkeep to the next, and so many times."""
DAYS = 8 * 24 * 3600


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_tables, "UPKEEP_COMMITS", COMMITS)


def spec(location: str, **storage: object) -> JobSpec:
    return JobSpec(attempt="one", table={"name": "rides", "location": location}, work={}, storage=dict(storage))


def refused(offset: int) -> pa.Table:
    row = {
        "ingest": "feed", "topic": "rides", "topic_id": "t", "partition": 0, "offset": offset,
        "reason": "it cannot be read", "value": b"{", "attempt": "one",
    }  # fmt: skip
    return pa.Table.from_pylist([row], ERROR_SCHEMA)


def counted(folder: Path) -> dict[str, int]:
    """Files of data, of the timeline and of the decision chain; all become older than what is kept
    for those who are at work."""
    found, then = {"data": 0, "timeline": 0, ".txn": 0}, time.time() - DAYS
    for path in folder.rglob("*"):
        if not path.is_file() or path.name == "clock":
            continue
        os.utime(path, (then, then))
        if path.parent.name in found:
            found[path.parent.name] += 1
        found["data"] += path.parent == folder
    return found


def offsets(location: str, **options: str) -> list[int]:
    table: pa.Table = open_table(f"{location}_errors", storage_options=options).scan(columns=["offset"]).to_arrow()
    return sorted(table["offset"].to_pylist())


@pytest.mark.parametrize("kind", ["MergeOnRead", "CopyOnWrite"])
def test_many_commits_leave_few_files_and_each_message_once(kind: TableTypeName, tmp_path: Path) -> None:
    location = f"file://{tmp_path}/rides"
    if kind == "CopyOnWrite":
        # As releases before made it.
        create_table(
            f"{location}_errors",
            ERROR_SCHEMA,
            record_key=list(ERRORS.key),
            name="rides_errors",
            index={"type": "Bucket", "buckets": error_tables.BUCKETS},
        )
    counts = []
    for turn in range(ROUNDS):
        for number in range(COMMITS):
            keep_refused(spec(location), refused(turn * COMMITS + number))
        counts.append(counted(tmp_path / "rides_errors"))
    # An attempt that begins again refuses the same once more.
    keep_refused(spec(location), refused(3))
    assert offsets(location) == list(range(ROUNDS * COMMITS))
    assert open_table(f"{location}_errors").context.config.type.value == kind
    for what in ("data", "timeline", ".txn"):
        assert max(each[what] for each in counts[5:]) <= max(each[what] for each in counts[:5]), (what, counts)


def test_a_commit_asks_the_store_for_as_much_however_many_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_tables, "UPKEEP_COMMITS", 5)
    with running_waves() as (server, waves):
        for name, value in server.options.items():
            monkeypatch.setenv(name.upper(), value)
        location = server.new_uri()
        asked = spec(
            location, endpoint=server.endpoint, region="us-east-1", credentials=["ACCESS_KEY_ID", "SECRET_ACCESS_KEY"]
        )
        totals = []
        for number in range(30):
            with waves.counted() as requests:
                keep_refused(asked, refused(number))
            totals.append(requests.total)
        # In the middle between two upkeeps.
        assert totals[27] <= totals[7] == 27, totals
        # An upkeep too, whose store lists a little more or less.
        assert max(totals[15:]) <= max(totals[:15]) + 5, totals
        assert offsets(location, **server.options) == list(range(30))


def test_another_table_where_the_error_table_is_to_lie_is_named_and_left_alone(tmp_path: Path) -> None:
    location = f"file://{tmp_path}/rides"
    other = create_table(f"{location}_errors", {"id": pa.string()}, record_key="id", name="broken_rides")
    with pytest.raises(
        InvalidRequestError,
        match="rides_errors, and the table 'broken_rides' lies there, whose record key is id: give one",
    ):
        keep_refused(spec(location), refused(1))
    assert other.history().num_rows == 0
