"""Table services in the local runtime: real jobs on a real merge-on-read table, from manifest to
status.

Aspects: a run, a dry run and its approval, a plan that has gone stale, a schedule, need, a wish for
other buckets, and a metadata table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.api import HudiTable, create_table, open_table, upgrade_table
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.store.clock import SystemClock
from tests.support.manifests import manifest

ROWS = pa.table({"id": [f"k{i}" for i in range(8)], "ts": pa.array(range(8), pa.int64())})
QUICK = RetryPolicy(attempts_max=2, backoff_first_seconds=0.1, backoff_max_seconds=0.1)


@dataclass
class Lake:
    """A table that is written by hand, and manifests that keep it."""

    folder: Path
    lines: list[str] = field(default_factory=list)

    @property
    def location(self) -> Path:
        return self.folder / "lake" / "flights"

    def make(self) -> HudiTable:
        table = create_table(
            str(self.location),
            ROWS.schema,
            record_key="id",
            ordering_fields="ts",
            type="MergeOnRead",
            index={"type": "Bucket", "buckets": 2},
            version=6,
        )
        table.upsert(ROWS)
        return table

    def log(self, ts: int = 100) -> None:
        open_table(str(self.location)).upsert(ROWS.slice(0, 1).set_column(1, "ts", pa.array([ts], pa.int64())))

    def table(self, **changes: Any) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "location": f"file://{self.location}",
            "type": "MergeOnRead",
            "recordKey": ["id"],
            "orderingFields": ["ts"],
            "index": {"type": "Bucket", "buckets": 2},
        }
        return manifest(**(spec | changes))

    def service(self, **changes: Any) -> dict[str, Any]:
        spec: dict[str, Any] = {"tableRef": {"name": "flights"}, "type": "Compaction"}
        return manifest("upkeep", "TableService", **(spec | changes))

    def apply(self, *documents: dict[str, Any], clock: SystemClock | None = None) -> list[Mapping[str, Any]]:
        """The resources after `hudictl local`, HudiTable first."""
        path = self.folder / "manifest.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return LocalRuntime([path], self.folder / "state", clock or SystemClock(), self.lines.append, QUICK).run()

    def attempts(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "state" / "attempts").glob("*"))

    def logs(self) -> int:
        found = open_table(str(self.location)).files().to_pylist()
        return sum(row["log_files"] for row in found if row["latest"])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path)
    found.make()
    return found


def conditions(document: Mapping[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in document["status"]["conditions"]}


def test_a_service_runs_once_and_says_what_it_did(lake: Lake) -> None:
    lake.log()
    table, service = lake.apply(lake.table(), lake.service())
    status = service["status"]
    assert (status["phase"], conditions(service)["Ready"][:2]) == ("Succeeded", ("True", "Succeeded"))
    (run,) = status["runs"]
    assert (run["work"], run["phase"], run["figures"]["fileGroups"]) == ("Compaction", "Succeeded", 1.0)
    assert run["figures"]["bytesRead"] > 0
    assert status["lastRunTime"] == run["finished"]
    assert lake.logs() == 0
    assert conditions(table)["Compacted"][:2] == ("True", "NoLogFiles")
    again = lake.apply(lake.table(), lake.service())[1]
    assert again["status"] == status
    assert len(lake.attempts()) == 1


def test_a_dry_run_waits_for_its_approval_and_is_run_exactly(lake: Lake) -> None:
    lake.log()
    first = lake.apply(lake.table(), lake.service(mode="Plan"))[1]["status"]
    plan = first["plan"]
    assert first["phase"] == "Planned"
    assert (plan["fileGroups"], plan["filesBefore"], plan["filesAfter"]) == (1, 2, 1)
    assert plan["bytesRead"] > 0
    assert plan["predictedSeconds"] >= 0
    assert len(plan["details"]) == 1
    assert lake.logs() == 1
    assert lake.apply(lake.table(), lake.service(mode="Plan"))[1]["status"] == first, "nothing runs without an approval"

    done = lake.apply(lake.table(), lake.service(mode="Plan", approve=plan["digest"]))[1]["status"]
    assert lake.logs() == 0
    assert done["lastPlan"]["digest"] == plan["digest"]
    assert "plan" not in done
    actual = done["actual"]
    assert (actual["fileGroups"], actual["filesBefore"], actual["bytesRead"]) == (1, 2, plan["bytesRead"])
    assert actual["seconds"] > 0
    assert [run["work"] for run in done["runs"]] == ["Compaction", "Compaction/Plan"]
    assert lake.apply(lake.table(), lake.service(mode="Plan", approve=plan["digest"]))[1]["status"] == done


def test_plans_and_executions_may_be_different_resources(lake: Lake) -> None:
    lake.log()
    planned = lake.apply(lake.table(), lake.service(mode="Schedule"))[1]["status"]
    (instant,) = planned["runs"][0]["instants"]
    assert lake.apply(lake.table())[0]["status"]["timeline"]["pending"] == [f"{instant}.compaction.requested"]
    other = lake.service(mode="Execute")
    other["metadata"]["name"] = "worker"
    done = lake.apply(lake.table(), other)[1]["status"]
    assert done["runs"][0]["instants"] == [instant]
    assert lake.logs() == 0


def test_a_need_that_is_measured_starts_a_run_once(lake: Lake) -> None:
    wanted = lake.service(when={"logBytesRatio": "> 0", "commitsSince": "> 100"})
    quiet = lake.apply(lake.table(), wanted)[1]
    assert conditions(quiet)["Ready"][:2] == ("True", "NotNeeded")
    assert lake.attempts() == []
    lake.log()
    done = lake.apply(lake.table(), wanted)[1]
    assert [run["phase"] for run in done["status"]["runs"]] == ["Succeeded"]
    assert lake.logs() == 0
    assert lake.apply(lake.table(), wanted)[1]["status"] == done["status"]


def test_a_moment_of_the_schedule_that_has_come_is_run_and_the_next_is_told(lake: Lake) -> None:
    class Later(SystemClock):
        def now(self) -> datetime:
            return super().now() + timedelta(hours=1)

    lake.log()
    wanted = lake.service(schedule="0 * * * *", timeZone="Europe/Berlin")
    first = lake.apply(lake.table(), wanted)[1]["status"]
    assert lake.attempts() == [], "moments before the resource was made do not count, and nobody waits for the next"
    assert first["phase"] == "Idle"
    done = lake.apply(lake.table(), wanted, clock=Later())[1]["status"]
    assert done["runs"][0]["batch"] == first["schedule"]["next"] == done["schedule"]["last"]
    assert done["schedule"]["next"] > done["schedule"]["last"]
    assert lake.logs() == 0


def test_a_run_that_takes_too_long_is_stopped(lake: Lake) -> None:
    lake.log()
    found = lake.apply(lake.table(), lake.service(activeDeadline="100ms"))[1]
    assert conditions(found)["Stalled"][:2] == ("True", "DeadlineExceeded")
    (run,) = found["status"]["runs"]
    assert (run["phase"], run["reason"]) == ("Failed", "DeadlineExceeded")
    assert lake.logs() == 1


def test_other_buckets_are_a_wish_that_costs_and_the_table_keeps_its_own(lake: Lake) -> None:
    lake.log()
    asked = lake.table(index={"type": "Bucket", "buckets": 4}, maintenance={"compaction": {"mode": "Auto"}},
                       options={"hoodie.compact.inline.max.delta.commits": "1"})  # fmt: skip
    (table,) = lake.apply(asked)
    assert conditions(table)["ResizeNeedsApproval"][:2] == ("True", "BucketsChanged")
    assert "2 file groups of 1 partition would be rewritten into 4" in conditions(table)["ResizeNeedsApproval"][2]
    assert conditions(table)["Ready"][0] == "True"
    assert [run["work"] for run in table["status"]["runs"]] == ["Compaction"], "the table is kept meanwhile"
    assert "ResizeNeedsApproval" not in conditions(lake.apply(lake.table())[0])


def test_a_resize_is_planned_approved_and_done_and_the_wish_is_gone(lake: Lake) -> None:
    lake.log()
    wanted = lake.table(index={"type": "Bucket", "buckets": 4})
    plan = lake.apply(wanted, lake.service(type="Resize", mode="Plan"))[1]["status"]["plan"]
    assert (plan["fileGroups"], plan["filesAfter"]) == (2, 4)
    assert open_table(str(lake.location)).context.config.index.buckets == 2  # type: ignore[union-attr]
    table, done = lake.apply(wanted, lake.service(type="Resize", mode="Plan", approve=plan["digest"]))
    assert done["status"]["actual"]["bytesRead"] == plan["bytesRead"]
    assert open_table(str(lake.location)).context.config.index.buckets == 4  # type: ignore[union-attr]
    (table,) = lake.apply(wanted)
    assert "ResizeNeedsApproval" not in conditions(table)
    lake.log()
    assert open_table(str(lake.location)).scan().to_arrow().num_rows == ROWS.num_rows


def test_a_metadata_table_that_a_write_switched_off_is_told_until_it_is_there_again(lake: Lake) -> None:
    table = open_table(str(lake.location))
    assert "MetadataTable" not in conditions(lake.apply(lake.table())[0])
    table.build_metadata()
    assert conditions(lake.apply(lake.table())[0])["MetadataTable"] == ("True", "Kept", "ready: files")

    drop_metadata_table(table.context, "its partition is wrong:\n2 files differ")
    (found,) = lake.apply(lake.table())
    said = "its partition is wrong: 2 files differ (it had files); readers list the folders; a TableService of type Indexing builds it again"
    assert conditions(found)["MetadataTable"] == ("False", "SwitchedOff", said)
    assert conditions(found)["Ready"][0] == "True"
    lake.apply(lake.table())
    assert lake.lines.count(f"warning: flights: MetadataTableSwitchedOff: {said}") == 1

    built = lake.service(type="Indexing", indexing={"partitions": ["column_stats"]})
    assert lake.apply(lake.table(), built)[1]["status"]["phase"] == "Succeeded"
    told = conditions(lake.apply(lake.table())[0])["MetadataTable"]
    assert told == ("True", "Kept", "ready: column_stats, files")


def test_indexes_with_a_name_are_refused_on_version_6_built_on_version_9_and_dropped(lake: Lake) -> None:
    index = {"name": "by_ts", "column": "ts"}
    wanted = lake.service(type="Indexing", indexing={"partitions": ["record_index"], "indexes": [index]})
    refused = conditions(lake.apply(lake.table(), wanted)[1])["Stalled"]
    assert refused[:2] == ("True", "InvalidSpec")
    assert "spec.indexing.indexes: by_ts: indexes of secondary keys and expressions are of table ver" in refused[2]

    upgrade_table(str(lake.location), to=9)
    built = lake.apply(lake.table(), wanted)[1]["status"]
    assert built["phase"] == "Succeeded"
    assert built["runs"][0]["message"].startswith("built files, record_index, secondary_index_by_ts in ")
    told = conditions(lake.apply(lake.table())[0])["MetadataTable"]
    assert told == ("True", "Kept", "ready: files, record_index, secondary_index_by_ts")

    lake.apply(lake.table(), lake.service(type="Indexing", indexing={"drop": ["by_ts"]}))
    told = conditions(lake.apply(lake.table())[0])["MetadataTable"]
    assert told == ("True", "Kept", "ready: files, record_index")


def test_what_a_table_lacks_is_told_and_nothing_starts(lake: Lake) -> None:
    stray = lake.service(tableRef={"name": "other"})
    assert conditions(lake.apply(lake.table(), stray)[1])["Stalled"][:2] == ("True", "TableMissing")
    wrong = lake.apply(lake.table(recordKey=["ts"]), lake.service())[1]
    assert conditions(wrong)["Stalled"][:2] == ("True", "TableNotReady")
    zone = lake.apply(lake.table(), lake.service(schedule="0 3 * * *", timeZone="Europe/Berlim"))[1]
    assert conditions(zone)["Stalled"][:2] == ("True", "InvalidSpec")
    assert "did you mean Europe/Berlin?" in conditions(zone)["Stalled"][2]
    held = lake.apply(lake.table(), lake.service(suspend=True))[1]
    assert held["status"]["phase"] == "Suspended"
    assert lake.attempts() == []


def test_an_approved_plan_whose_files_have_moved_is_stale_and_made_anew(lake: Lake) -> None:
    lake.log()
    first = lake.apply(lake.table(), lake.service(mode="Plan"))[1]["status"]
    lake.log(200)
    digest = first["plan"]["digest"]
    stale = lake.apply(lake.table(), lake.service(mode="Plan", approve=digest))[1]
    assert conditions(stale)["PlanStale"][:2] == ("True", "TableMoved")
    assert stale["status"]["plan"]["digest"] not in ("", digest)
    assert conditions(stale)["Ready"][:2] == ("True", "Planned")
    assert lake.logs() == 2
    attempts = lake.attempts()
    again = lake.apply(lake.table(), lake.service(mode="Plan", approve=digest))[1]
    assert again["status"] == stale["status"]
    assert lake.attempts() == attempts
    fresh = stale["status"]["plan"]["digest"]
    done = lake.apply(lake.table(), lake.service(mode="Plan", approve=fresh))[1]
    assert done["status"]["lastPlan"]["digest"] == fresh
    assert "PlanStale" not in conditions(done)
    assert lake.logs() == 0
