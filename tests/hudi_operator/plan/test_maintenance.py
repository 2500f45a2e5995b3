"""`maintenance` of a HudiTable: when each service is due, and what the conditions say of what is
due."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.plan.effects import Launch
from hudi_operator.plan.observed import FileFact, Observed, TableObservation, Trace
from hudi_operator.plan.table import plan_table
from hudi_table.model.service.debt import ArchivingDebt, CompactionDebt
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import IndexSpec, IndexType
from hudi_table.model.timeline.instants import Action, Instant, State
from tests.support.plans import CONFIG, FILES, NOW, conditions, desired, of, run_after, seen, status_of, table
from tests.support.service_plans import LOGGED

SIMPLE = replace(CONFIG, index=IndexSpec(IndexType.SIMPLE))
SMALL = tuple(FileFact(f"p{i % 2}", 1 << 20, 10) for i in range(10))


def commits(number: int) -> tuple[Instant, ...]:
    return tuple(Instant(f"202601010000{i:05}", Action.COMMIT, State.COMPLETED) for i in range(number))


def after(number: int, **since: int) -> TableObservation:
    """A table of so many commits, `since` so many of them of each service."""
    kinds = {ServiceType[name.upper()]: Trace(commits_since=count) for name, count in since.items()}
    made = commits(number)
    debt = ArchivingDebt(number, 30, max(0, number - 20), due=number > 30)
    return table(
        *FILES,
        commits=made,
        traces=kinds,
        last_write=made[-1].time,
        config=SIMPLE,
        timeline_files=3 * number,
        archiving=debt,
    )


def work_of(found: TableObservation, **changes: Any) -> list[str]:
    wanted = desired(index={"type": "Simple"}, **changes)
    return [launch.run.work for launch in of(Launch, plan_table(wanted, seen(found), NOW))]


def message(found: TableObservation, kind: str, keepers: dict[ServiceType, str] | None = None, **changes: Any) -> str:
    observed: Observed = replace(seen(found), keepers=keepers or {})
    effects = plan_table(desired(index={"type": "Simple"}, **changes), observed, NOW)
    return next(c.message for c in status_of(effects).conditions if c.type == kind)


class TestCleaning:
    def test_is_due_when_more_is_there_than_is_kept_and_some_commits_came(self) -> None:
        assert work_of(after(11, cleaning=11)) == ["Cleaning"]
        assert work_of(after(10, cleaning=10)) == []
        assert work_of(after(20, cleaning=4)) == []
        assert work_of(after(20, cleaning=5)) == ["Cleaning"]

    def test_follows_the_manifest(self) -> None:
        assert work_of(after(11, cleaning=11), maintenance={"cleaning": {"mode": "Disabled"}}) == []
        assert work_of(after(4, cleaning=4), maintenance={"cleaning": {"keepCommits": 3}}) == []
        options = {"hoodie.clean.trigger.max.commits": "1"}
        assert work_of(after(4, cleaning=1), maintenance={"cleaning": {"keepCommits": 3}}, options=options) == [
            "Cleaning"
        ]

    def test_takes_options_by_the_names_that_hudi_had_for_them(self) -> None:
        manifest: dict[str, Any] = {"maintenance": {"cleaning": {"keepCommits": 3}}}
        often = {"hoodie.clean.max.commits": "1"}
        assert work_of(after(4, cleaning=1), **manifest) == []
        assert work_of(after(4, cleaning=1), **manifest, options=often) == ["Cleaning"]
        kept = often | {"hoodie.cleaner.commits.retained": "4"}
        assert work_of(after(4, cleaning=1), **manifest, options=kept) == []
        assert work_of(after(5, cleaning=1), **manifest, options=kept) == ["Cleaning"]

    def test_tells_its_job_what_to_keep(self) -> None:
        wanted = desired(index={"type": "Simple"}, maintenance={"cleaning": {"keepCommits": 3}})
        (launch,) = of(Launch, plan_table(wanted, seen(after(11, cleaning=11)), NOW))
        assert launch.spec.work["options"] == {
            "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
            "hoodie.clean.commits.retained": "3",
        }
        assert launch.spec.engine == "Local"

    def test_is_left_to_a_table_service_of_its_type(self) -> None:
        found = after(11, cleaning=11)
        observed = replace(seen(found), keepers={ServiceType.CLEANING: "weekly"})
        assert not of(Launch, plan_table(desired(index={"type": "Simple"}), observed, NOW))
        assert message(found, "Clean", {ServiceType.CLEANING: "weekly"}).endswith("TableService weekly does it")

    def test_that_found_nothing_is_not_repeated_until_the_next_write(self) -> None:
        wanted, found = desired(index={"type": "Simple"}), after(11, cleaning=11)
        done = run_after(plan_table(wanted, seen(found), NOW), "NothingToDo")
        assert not of(Launch, plan_table(wanted, seen(found, runs=(done,)), NOW))
        assert of(Launch, plan_table(wanted, seen(after(12, cleaning=12), runs=(done,)), NOW))


class TestArchiving:
    def test_is_due_past_its_limit(self) -> None:
        quiet = {"cleaning": {"mode": "Disabled"}}
        assert work_of(after(31), maintenance=quiet) == ["Archiving"]
        assert work_of(after(30), maintenance=quiet) == []
        assert work_of(after(31), maintenance={**quiet, "archiving": {"mode": "Disabled"}}) == []

    def test_comes_after_cleaning(self) -> None:
        assert work_of(after(31, cleaning=31)) == ["Cleaning"]

    def test_starts_no_job_while_too_little_may_leave_and_says_what_holds_it_back(self) -> None:
        held = replace(
            after(50), archiving=ArchivingDebt(50, 30, 3, due=False, held_by="x is held back by a savepoint")
        )
        assert work_of(held, maintenance={"cleaning": {"mode": "Disabled"}}) == []
        wanted = desired(index={"type": "Simple"})
        assert conditions(plan_table(wanted, seen(held), NOW))["Archived"] == ("False", "HeldBack")
        assert message(held, "Archived").endswith("30 may be: x is held back by a savepoint")

    def test_is_a_condition(self) -> None:
        off = {"cleaning": {"mode": "Disabled"}, "archiving": {"mode": "Disabled"}}
        wanted = desired(index={"type": "Simple"}, maintenance=off)
        assert conditions(plan_table(wanted, seen(after(31)), NOW))["Archived"] == ("False", "ArchivingDue")
        assert "set maintenance.archiving.mode to Auto" in message(after(31), "Archived", maintenance=off)
        assert conditions(plan_table(wanted, seen(after(30)), NOW))["Archived"] == ("True", "TimelineShort")

    def test_of_a_long_timeline_is_warned_of_before_a_page_is_full(self) -> None:
        wanted = desired(index={"type": "Simple"}, suspend=True)
        long = replace(after(20), timeline_files=800)
        assert conditions(plan_table(wanted, seen(long), NOW))["Archived"] == ("False", "TimelineLong")
        fine = replace(long, timeline_files=799)
        assert conditions(plan_table(wanted, seen(fine), NOW))["Archived"] == ("True", "TimelineShort")


AUTO = {"clustering": {"mode": "Auto"}}


class TestClustering:
    def test_is_due_when_files_are_small_and_some_commits_came(self) -> None:
        small = replace(after(5, clustering=4), files=SMALL)
        assert work_of(small, maintenance=AUTO) == ["Clustering"]
        assert work_of(replace(after(5, clustering=3), files=SMALL), maintenance=AUTO) == []
        assert work_of(replace(small, files=SMALL[:7]), maintenance=AUTO) == []
        assert work_of(small, maintenance=AUTO, files={"smallFileLimit": "512Ki"}) == []
        assert work_of(small) == []

    def test_that_was_planned_by_somebody_is_executed(self) -> None:
        waiting = {ServiceType.CLUSTERING: Trace(pending=("20260101000000001",))}
        found = replace(after(2), traces=waiting)
        (launch,) = of(Launch, plan_table(desired(index={"type": "Simple"}, maintenance=AUTO), seen(found), NOW))
        assert (launch.run.work, launch.spec.work["mode"]) == ("Clustering", "Execute")

    def test_starts_no_job_for_small_files_of_which_each_is_alone_in_its_partition(self) -> None:
        alone = tuple(FileFact(f"p{i}", 1 << 20, 10) for i in range(10))
        assert work_of(replace(after(5, clustering=4), files=alone), maintenance=AUTO) == []

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({}, "set maintenance.clustering.mode to Auto, or make a TableService"),
            ({"maintenance": AUTO, "suspend": True}, "it waits for the table, which is suspended"),
            ({"maintenance": AUTO}, "it waits: Clustering is due, 10 small files among 10"),
        ],
    )
    def test_says_what_keeps_it(self, changes: dict[str, Any], words: str) -> None:
        small = replace(after(5, clustering=4), files=SMALL)
        assert words in message(small, "WellSized", **changes)
        assert "Clustering is due: 10 small files among 10" in message(small, "WellSized", **changes)


class TestCompaction:
    def test_says_why_it_is_due_and_what_keeps_it(self) -> None:
        logs = (FileFact("p", 1 << 20, None, 1 << 20),)
        debt = CompactionDebt(why="5 deltacommits", file_groups=1, bytes_read=2 << 20)
        found = table(*FILES, config=LOGGED, files=logs, compaction=debt)
        effects = plan_table(desired(type="MergeOnRead"), seen(found), NOW)
        (said,) = [c for c in status_of(effects).conditions if c.type == "Compacted"]
        assert said.message == (
            "1.0 MiB of log files wait to be compacted; Compaction is due: 5 deltacommits; nothing does it: set "
            "maintenance.compaction.mode to Auto, or make a TableService"
        )


class TestBuckets:
    def test_that_change_need_an_approval_and_the_table_goes_on(self) -> None:
        effects = plan_table(desired(index={"type": "Bucket", "buckets": 8}), seen(table(FILES[0])), NOW)
        assert conditions(effects)["ResizeNeedsApproval"] == ("True", "BucketsChanged")
        assert "Stalled" not in conditions(effects)
        (launch,) = of(Launch, effects)
        assert launch.spec.table["index"]["buckets"] == 4, "an ingest writes with the buckets that are there"

    def test_tell_what_it_costs(self) -> None:
        effects = plan_table(desired(index={"type": "Bucket", "buckets": 8}), seen(table(*FILES)), NOW)
        (said,) = [c for c in status_of(effects).conditions if c.type == "ResizeNeedsApproval"]
        assert "1 file group of 1 partition would be rewritten into 8, 200.0 MiB read" in said.message
        assert "about 20 s" in said.message
        assert "or put 4 back" in said.message
