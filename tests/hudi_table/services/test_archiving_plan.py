"""Which instants leave the active timeline, and what holds them back: planning on listings that are
made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.model.timeline.instants import Action, Instant, State, format_instant_time, parse_instant
from hudi_table.services.archiving.plan import Leaving, Present, plan_archiving
from hudi_table.services.archiving.policy import ArchivePolicy, wants_archiving
from hudi_table.table.timeline.timeline import Timeline

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = NOW - timedelta(hours=2)
POLICY = ArchivePolicy(least=2, most=4)


def at(minute: int) -> str:
    return format_instant_time(datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minute))


def done(minute: int, action: str = "commit") -> list[str]:
    pending = f"{at(minute)}.inflight" if action == "commit" else f"{at(minute)}.{action}.inflight"
    return [f"{at(minute)}.{action}.requested", pending, f"{at(minute)}.{action}"]


def commits(count: int) -> list[str]:
    """Every ten minutes."""
    return [name for number in range(count) for name in done(10 * number)]


def timeline(names: list[str], ages: Mapping[str, datetime] | None = None) -> Timeline:
    found = [instant for name in names if (instant := parse_instant(name))]
    highest: dict[tuple[str, Action], Instant] = {}
    for instant in sorted(found, key=lambda i: i.sort_key):
        highest[instant.time, instant.grouped_action] = instant
    instants = tuple(sorted(highest.values(), key=lambda i: i.sort_key))
    return Timeline(instants, {name: (ages or {}).get(name, OLD) for name in names})


def plan(
    names: list[str],
    policy: ArchivePolicy = POLICY,
    *,
    ages: Mapping[str, datetime] | None = None,
    logs: bool = False,
    kept: tuple[str, ...] = (),
    metadata: str = "",
    force: bool = False,
) -> Leaving:
    present = Present(NOW, 3600.0, logs, metadata)
    return plan_archiving(timeline(names, ages), policy, present, gone=lambda i: i.time not in kept, force=force)


def leave(found: Leaving) -> list[str]:
    return [instant.file_name for instant in found.instants]


def test_beyond_the_most_the_oldest_leave_until_the_least_are_left() -> None:
    found = plan(commits(5))
    assert leave(found) == [f"{at(0)}.commit", f"{at(10)}.commit", f"{at(20)}.commit"]
    assert found.due
    assert found.held_by == ""


def test_nothing_leaves_up_to_the_most_unless_it_is_forced() -> None:
    assert not plan(commits(4)).due
    assert leave(plan(commits(4))) == []
    forced = plan(commits(4), force=True)
    assert forced.due
    assert leave(forced) == [f"{at(0)}.commit", f"{at(10)}.commit"]
    assert not plan(commits(2), force=True).due


@pytest.mark.parametrize(
    "name",
    [
        f"{at(15)}.commit.requested",
        f"{at(15)}.inflight",
        f"{at(15)}.compaction.requested",
        f"{at(15)}.replacecommit.requested",
        f"{at(15)}.rollback.requested",
        f"{at(15)}.clean.requested",
        f"{at(15)}.claim",
    ],
)
def test_what_is_pending_keeps_the_write_before_it(name: str) -> None:
    """Were that write gone too, the timeline would start after it, and its files be taken for
    committed ones."""
    found = plan([*commits(6), name])
    assert leave(found) == [f"{at(0)}.commit"]
    assert name in found.held_by
    assert not found.due


def test_what_is_pending_before_the_timeline_holds_all_of_it() -> None:
    assert leave(plan([*[n for n in commits(6) if not n.startswith(at(0))], f"{at(0)}.inflight"])) == []


def test_an_inflight_rollback_without_a_plan_holds_nothing() -> None:
    """A paused process put it back after its rollback was archived."""
    assert len(leave(plan([*commits(6), f"{at(15)}.rollback.inflight"]))) == 4


def test_a_savepoint_keeps_its_write_and_what_came_after() -> None:
    found = plan([*commits(7), f"{at(20)}.savepoint.inflight", f"{at(20)}.savepoint"])
    assert leave(found) == [f"{at(0)}.commit", f"{at(10)}.commit"]
    assert f"savepoint {at(20)}" in found.held_by


def test_a_write_leaves_only_when_it_is_older_than_the_quarantine() -> None:
    ages = {f"{at(20)}.commit": NOW - timedelta(seconds=3600)}
    found = plan(commits(7), ages=ages)
    assert leave(found) == [f"{at(0)}.commit", f"{at(10)}.commit"]
    assert "3600 s" in found.held_by


def test_a_write_of_which_the_metadata_table_holds_logs_stays_with_all_that_came_after() -> None:
    """A log of an instant that no timeline shows counts for nothing there."""
    found = plan(commits(7), metadata=at(20))
    assert leave(found) == [f"{at(0)}.commit", f"{at(10)}.commit"]
    assert "metadata table" in found.held_by


def test_replaced_files_that_are_there_keep_the_write_that_replaced_them() -> None:
    names = [*done(0), *done(10, "replacecommit"), *done(20, "replacecommit"), *list(commits(8)[9:])]
    assert len(leave(plan(names))) == 6
    found = plan(names, kept=(at(20),))
    assert leave(found) == [f"{at(0)}.commit", f"{at(10)}.replacecommit"]
    assert "not cleaned" in found.held_by


def deltas(count: int, *compactions: int) -> list[str]:
    logged = [name for number in range(count) for name in done(10 * number, "deltacommit")]
    merged = [
        name
        for minute in compactions
        for name in (f"{at(minute)}.compaction.requested", f"{at(minute)}.compaction.inflight", f"{at(minute)}.commit")
    ]
    return [*logged, *merged]


def test_the_deltacommits_that_make_a_compaction_due_stay() -> None:
    policy = ArchivePolicy(least=1, most=2, delta_commits=3)
    assert leave(plan(deltas(6), policy, logs=True))[-1] == f"{at(20)}.deltacommit"
    # Two since the last compaction: it stays itself, or they would be counted from the timeline's start.
    found = plan(deltas(6, 35), policy, logs=True)
    assert leave(found)[-1] == f"{at(30)}.deltacommit"
    assert "deltacommits" in found.held_by
    assert len(leave(plan(deltas(6), ArchivePolicy(least=1, most=2, delta_commits=0), logs=True))) == 5


def test_cleans_and_rollbacks_before_the_new_start_leave_in_order_but_for_the_newest_clean() -> None:
    names = [*commits(6), *done(5, "clean"), *done(12, "rollback"), *done(33, "rollback"), *done(35, "clean")]
    assert leave(plan(names)) == [
        f"{at(0)}.commit",
        f"{at(5)}.clean",
        f"{at(10)}.commit",
        f"{at(12)}.rollback",
        f"{at(20)}.commit",
        f"{at(30)}.commit",
        f"{at(33)}.rollback",
    ]
    only = [*commits(6), *done(5, "clean")]
    assert f"{at(5)}.clean" not in leave(plan(only))


def test_too_many_rollbacks_leave_although_no_write_does() -> None:
    names = [*done(0), *done(200), *(name for number in range(1, 7) for name in done(number, "rollback"))]
    found = plan(names)
    assert leave(found) == [f"{at(number)}.rollback" for number in range(1, 5)]
    assert found.due


def test_rollbacks_of_completed_writes_leave_with_the_writes_around_them_alone() -> None:
    names = [*done(0), *done(200), *(name for number in range(1, 7) for name in done(number, "rollback"))]
    asked: list[str] = []

    def undone(rollbacks: Sequence[Instant]) -> list[Instant]:
        asked.extend(i.time for i in rollbacks)
        return [i for i in rollbacks if i.time == at(2)]

    found = plan_archiving(timeline(names), POLICY, Present(NOW, 3600.0, False), gone=lambda _: True, undone=undone)
    without = plan(names)
    assert asked == [i.time for i in without.instants]
    assert [i.time for i in found.instants] == [time for time in asked if time != at(2)]


def test_savepoints_restores_and_indexing_stay() -> None:
    names = [*commits(6), *done(4, "restore"), *done(6, "indexing")]
    assert all(name.endswith(".commit") for name in leave(plan(names)))


def test_few_instants_make_no_archive_file() -> None:
    """One young write lets only two leave: they wait for more."""
    assert not plan(commits(7), ages={f"{at(20)}.commit": NOW}).due


def test_a_cleaner_by_hours_keeps_what_it_retains_on_the_timeline() -> None:
    options = {"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS", "hoodie.cleaner.hours.retained": "1"}
    policy = ArchivePolicy.parse(
        options
        | {"hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "4"}
    )
    writes = timeline(commits(20)).commits
    # Seven of the last hour, and the one before them.
    assert policy.limits(writes) == (8, 10)
    assert POLICY.limits(writes) == (2, 4)
    assert policy.limits((Instant("00000000000000", Action.COMMIT, State.COMPLETED),)) == (2, 4)


@pytest.mark.parametrize(("seconds", "files"), [(24, range(950, 1000)), (120, range(230, 260))])
def test_the_timeline_stays_as_short_as_the_documentation_says(seconds: int, files: range) -> None:
    """A write and a clean every so many seconds, archived after each: 2.5 a minute stay just below
    1,000 files."""
    names: dict[str, datetime] = {}
    longest = 0
    for number in range(6 * 3600 // seconds // 3):
        now = NOW + timedelta(seconds=seconds * number)
        time, later = (format_instant_time(now + timedelta(milliseconds=more)) for more in (0, 1))
        for name in (f"{time}.commit.requested", f"{time}.inflight", f"{time}.commit"):
            names[name] = now
        for name in (f"{later}.clean.requested", f"{later}.clean.inflight", f"{later}.clean"):
            names[name] = now
        longest = max(longest, len(names))
        if number % 3:
            continue
        made = timeline(list(names), names)
        found = plan_archiving(made, ArchivePolicy(), Present(now, 3600.0, False), gone=lambda _: True)
        states = made.states()
        for instant in found.instants if found.due else ():
            for state in states[instant.time, instant.grouped_action]:
                del names[state.file_name]
    assert longest in files


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"hoodie.keep.min.commits": "30"}, ("hoodie.keep.max.commits=30", "hoodie.keep.min.commits=30")),
        ({"hoodie.keep.max.commits": "20"}, ("hoodie.keep.max.commits=20", "hoodie.keep.min.commits=20")),
        ({"hoodie.keep.min.commits": "10"}, ("hoodie.keep.min.commits=10", "retained=10")),
        ({"hoodie.cleaner.commits.retained": "20"}, ("hoodie.clean.commits.retained=20",)),
        ({"hoodie.clean.commits.retained": "25"}, ("hoodie.clean.commits.retained=25",)),
        ({"hoodie.keep.min.commits": "few"}, ("hoodie.keep.min.commits", "few")),
        ({"hoodie.archive.beyond.savepoint": "true"}, ("hoodie.archive.beyond.savepoint",)),
        ({"hoodie.archive.merge.enable": "perhaps"}, ("hoodie.archive.merge.enable",)),
        ({"hoodie.keep.min.comits": "20"}, ("hoodie.keep.min.commits",)),
    ],
)
def test_settings_that_contradict_each_other_are_refused_by_name(
    options: dict[str, str], names: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        ArchivePolicy.parse(options)
    assert all(name in str(raised.value) for name in names)


def test_the_defaults_are_those_of_hudi() -> None:
    assert (ArchivePolicy.parse({}).least, ArchivePolicy.parse({}).most) == (20, 30)
    assert ArchivePolicy.parse({}).delta_commits == 5
    assert ArchivePolicy.parse({"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"}).delta_commits == 0
    assert not wants_archiving({})
    assert wants_archiving({"hoodie.archive.automatic": "TRUE"})
