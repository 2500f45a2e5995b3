"""What stands before the blocks of a page: the table `lake/flights`, whose two writes have the
instants that the pages name.

A page's blocks are run in their order, in an empty folder, with the names of `names()`. What a
block needs beyond that is made by the function of `BEFORE`, right before it.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import hudi_table
from hudi_table import HudiTable, create_table, open_table
from tests.support.page_blocks import Block

FIRST, SECOND, PLANNED = "20261121094455123", "20261121094512034", "20261121094530250"
LOST = f"2013-01/.3f2a-0_{FIRST}.log.1_0-1-0"
"""The log that a page names. A file's real name is drawn."""
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "flight_id", "carrier", "month")),
        ("day", pa.date32()),
        ("dep_delay", pa.int64()),
        ("amount", pa.int64()),
        *((name, pa.int64()) for name in ("updated_at", "ts", "_event_lsn")),
        ("_change_operation_type", pa.string()),
    ]
)
Names = dict[str, Any]


class Moments:
    """The wall clock of the stories, which stands where it is put."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, tzinfo=UTC)

    def at(self, instant: str) -> None:
        """Puts it at an instant."""
        seen = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        self.now = seen + timedelta(milliseconds=int(instant[14:]))


def rows(count: int = 40, updated_at: int = 1) -> pa.Table:
    """Flights of January 2013; the delays of every third one are over an hour."""
    return pa.table(
        {
            "id": [f"UA-{1545 + number}-2013010110" for number in range(count)],
            "flight_id": [f"UA-{number}" for number in range(count)],
            "carrier": ["UA", "AA", "B6", None][: max(1, count)] * (count // 4) + ["UA"] * (count % 4),
            "month": ["2013-01"] * count,
            "day": [date(2026, 1, 1 + number % 2) for number in range(count)],
            "dep_delay": [90 if number % 3 == 0 else 5 for number in range(count)],
            "amount": list(range(count)),
            **{name: [updated_at] * count for name in ("updated_at", "ts", "_event_lsn")},
            "_change_operation_type": ["c"] * count,
        },
        SCHEMA,
    )


def flights(clock: Moments, where: str = "lake/flights", **how: Any) -> HudiTable:
    """A new table in the place of an older one: two writes, at the instants that the pages name."""
    if "://" not in where:
        shutil.rmtree(where, ignore_errors=True)
    asked = {"record_key": "id", "partition_by": "month", "index": {"type": "Bucket", "buckets": 8}}
    table = create_table(where, SCHEMA, **(asked | how))
    clock.at(FIRST)
    # The write's own claim comes first, then the table's founding commit and its end.
    clock.now -= timedelta(milliseconds=3)
    table.upsert(rows())
    clock.at(SECOND)
    table.upsert(rows(20, updated_at=2))
    clock.now += timedelta(hours=12)
    return table


def names(clock: Moments) -> Names:
    """What a page takes for given."""
    made: Names = {"create_table": create_table, "open_table": open_table, "hudi_table": hudi_table, "pyarrow": pa}
    made |= {"pc": pc, "duckdb": duckdb, "polars": pl, "schema": SCHEMA, "rows": rows(4), "batch": rows(12)}
    return made | {"logging": logging, "flights": flights(clock)}


def _many_commits(clock: Moments, given: Names) -> None:
    """A dozen more writes, of which some files may go."""
    for number in range(12):
        given["flights"].upsert(rows(8, updated_at=3 + number))


def _merge_on_read(clock: Moments, given: Names) -> None:
    given["flights"] = flights(clock, type="MergeOnRead")
    _many_commits(clock, given)


def _lost_log(clock: Moments, given: Names) -> None:
    """A compaction is planned, and the log of the second write, of which its page shows another
    name, is gone."""
    given["flights"] = flights(clock, type="MergeOnRead", index={"type": "Bucket", "buckets": 1})
    clock.at(PLANNED)
    given["flights"].schedule_compaction(force=True)
    (log,) = Path("lake/flights/2013-01").glob(".*.log.*")
    log.unlink()
    given["named"] = {LOST: log.relative_to("lake/flights").as_posix()}
    _hours_later(clock, given)


def _small_files(clock: Moments, given: Names) -> None:
    given["flights"] = flights(clock, index="Simple")
    for number in range(5):
        given["flights"].insert(rows(8, updated_at=number), options={"hoodie.parquet.small.file.limit": "0"})


def _two_months_later(clock: Moments, given: Names) -> None:
    clock.now += timedelta(days=60)


def _hours_later(clock: Moments, given: Names) -> None:
    """All that is there is older than the quarantine: nobody who began before can still publish
    what is taken back."""
    for file in Path("lake").rglob("*"):
        os.utime(file, (file.stat().st_mtime - 7200,) * 2)
    # A handle keeps the ages that it saw.
    given["flights"] = open_table("lake/flights")


def _taken_back(clock: Moments, given: Names) -> None:
    given["flights"] = flights(clock)
    given["flights"].savepoint(FIRST)
    _hours_later(clock, given)


def _written_again(clock: Moments, given: Names) -> None:
    given["flights"] = flights(clock)
    _hours_later(clock, given)


def _an_orphan(clock: Moments, given: Names) -> None:
    """A file of an instant that nobody knows, between the two writes."""
    file = min(Path("lake/flights/2013-01").glob(f"*{FIRST}.parquet"))
    shutil.copy(file, file.with_name(file.name.replace(FIRST, "20261121094500000")))
    _hours_later(clock, given)


def _carriers(clock: Moments, given: Names) -> None:
    named = pa.table({"carrier": ["UA", "AA"], "name": ["United", "American"]})
    create_table("lake/carriers", named.schema, record_key="carrier").upsert(named)


def _before_the_days(clock: Moments, given: Names) -> None:
    shutil.rmtree("lake")
    clock.now = datetime(2026, 11, 20, tzinfo=UTC)


def _no_lake(clock: Moments, given: Names) -> None:
    shutil.rmtree("lake", ignore_errors=True)


def _a_delta_table(clock: Moments, given: Names) -> None:
    from deltalake import write_deltalake

    _no_lake(clock, given)
    write_deltalake("delta/flights", rows())
    given["rows_of_today"] = rows(20, updated_at=2)


def _exported_flights(clock: Moments, given: Names) -> None:
    shutil.rmtree("lake", ignore_errors=True)
    source = create_table("lake/flights", SCHEMA, record_key="id")
    source.write(rows())
    source.scan().export("exported/flights", partition_by=["month"])
    _no_lake(clock, given)


def _an_iceberg_table(clock: Moments, given: Names) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    _no_lake(clock, given)
    given["warehouse"] = str(Path("warehouse").absolute())
    catalog = SqlCatalog("home", uri="sqlite:///iceberg.db", warehouse=f"file://{given['warehouse']}")
    catalog.create_namespace("air")
    catalog.create_table("air.flights", SCHEMA).append(rows())
    given["rows_of_today"] = rows(20, updated_at=2)


BEFORE: dict[str, Callable[[Moments, Names], None]] = {
    "README.md#3": _before_the_days,
    "docs/explanation/archiving.md#1": _many_commits,
    "docs/explanation/cleaning.md#1": _many_commits,
    "docs/explanation/cleaning.md#3": _two_months_later,
    "docs/reference/cli.md#3": _carriers,
    "docs/reference/services.md#4": _merge_on_read,
    "docs/explanation/clustering.md#1": _small_files,
    "docs/explanation/compaction.md#1": _merge_on_read,
    "docs/explanation/compaction.md#2": _lost_log,
    "docs/how-to/repair.md#1": _an_orphan,
    "docs/how-to/repair.md#2": _an_orphan,
    "docs/how-to/restore.md#1": _taken_back,
    "docs/how-to/restore.md#2": _written_again,
    "docs/how-to/coming-from-delta.md#1": _a_delta_table,
    "docs/how-to/coming-from-iceberg.md#1": _an_iceberg_table,
    "docs/how-to/importing.md#1": _exported_flights,
    "docs/how-to/bootstrap.md#1": _exported_flights,
    "docs/how-to/writing.md#1": _no_lake,
    "docs/tutorials/python.md#2": _no_lake,
}


def before(block: Block) -> Callable[[Moments, Names], None]:
    """What has to be there for a block."""
    return BEFORE.get(str(block), lambda clock, given: None)
