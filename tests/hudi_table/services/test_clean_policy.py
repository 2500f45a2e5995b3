"""Which slices are outdated, and what holds them back: the rules alone, on groups made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import ignored_options
from hudi_table.model.options.retention import CleanPolicy
from hudi_table.model.table.layouts import layout_of
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.cleaning import policy
from hudi_table.services.cleaning.policy import (
    READERS,
    CleanOptions,
    Rule,
    earliest_retained,
    recent_writes,
    verdicts,
)
from hudi_table.services.cleaning.stored import StoredGroup, StoredSlice, stored_groups
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.timeline import Timeline

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(hour: int) -> str:
    return f"20260101{hour:02d}0000000"


def group(*hours: int, replaced: str = "", file_id: str = "f") -> StoredGroup:
    slices = [
        StoredSlice(at(hour), (ObjectInfo(f"x/{file_id}_0-0-0_{at(hour)}.parquet", 10, NOON),))
        for hour in sorted(hours, reverse=True)
    ]
    return StoredGroup("x", file_id, tuple(slices), replaced)


def timeline(
    *hours: int, pending: Instant | None = None, ends: dict[int, int] | None = None, version: int = 6
) -> Timeline:
    """Commits that began at these hours, and ended then too, or at those of `ends`."""
    layout = layout_of(version)
    end_of = {hour: (ends or {}).get(hour, hour) for hour in hours}
    told = {hour: at(end) if layout.tells_completions else "" for hour, end in end_of.items()}
    instants = [Instant(at(hour), Action.COMMIT, State.COMPLETED, told[hour]) for hour in hours]
    found = [*instants, *([pending] if pending else [])]
    ages = {i.file_name: NOON.replace(hour=end_of[hour]) for i, hour in zip(instants, hours, strict=True)}
    return Timeline(tuple(sorted(found, key=lambda i: i.sort_key)), ages, layout=layout)


def outdated(found: StoredGroup, rule: Rule) -> list[int]:
    return [int(item.instant[8:10]) for item in rule.outdated(found)]


@pytest.mark.parametrize(
    ("hours", "retain", "gone"),
    [
        ((1, 2, 3, 4, 5), 4, [2, 1]),  # 3 is what a reader of 4 may still see of the moment before
        ((1, 2, 5), 4, [1]),
        ((1,), 4, []),
        ((5, 6), 4, []),
        ((1, 2, 3), 9, [2, 1]),
    ],
)
def test_the_newest_slice_before_the_retained_instant_and_all_after_it_stay(
    hours: tuple[int, ...], retain: int, gone: list[int]
) -> None:
    assert outdated(group(*hours), Rule(at(retain))) == gone


@pytest.mark.parametrize(("versions", "gone"), [(1, [3, 2, 1]), (3, [1]), (9, [])])
def test_counted_versions_stay(versions: int, gone: list[int]) -> None:
    assert outdated(group(1, 2, 3, 4), Rule(versions=versions)) == gone


def test_a_group_replaced_before_the_retained_instant_goes_whole_and_later_not_at_all() -> None:
    assert outdated(group(1, 2, replaced=at(3)), Rule(at(4))) == [2, 1]
    assert outdated(group(1, 2, replaced=at(4)), Rule(at(4))) == []
    assert outdated(group(1, 2, replaced=at(4)), Rule(versions=3)) == [2, 1]


def test_what_a_savepoint_or_a_pending_plan_needs_is_held_back_by_name() -> None:
    found = group(1, 2, 3, 4)
    name = found.slices[3].names[0]
    rule = Rule(at(9), savepoints={name: at(1)}, plans={("x", "f"): at(3)})
    assert [(v.slice.instant, v.held) for v in verdicts([found], rule)] == [
        (at(3), f"the pending plan {at(3)}"),
        (at(2), f"the pending plan {at(3)}"),
        (at(1), f"savepoint {at(1)}"),
    ]


def test_the_slice_that_a_pending_plan_reads_counts_as_a_version() -> None:
    assert outdated(group(1, 2, 3), Rule(versions=2, plans={("x", "f"): at(4)})) == [1]
    assert outdated(group(1, 2, 3), Rule(versions=1, plans={("x", "f"): at(4)})) == [2, 1]


def test_the_retained_instant_is_the_nth_newest_commit_but_none_after_a_pending_write() -> None:
    options = CleanOptions(commits=2)
    moment = NOON.replace(tzinfo=None)
    assert earliest_retained(timeline(1, 2), options, moment) is None
    found = earliest_retained(timeline(1, 2, 3, 4), options, moment)
    assert found is not None
    assert found.time == at(3)
    for action in (Action.COMMIT, Action.COMPACTION, Action.LOG_COMPACTION, Action.REPLACE_COMMIT):
        held = Instant(f"{at(2)[:-1]}1", action, State.REQUESTED)
        found = earliest_retained(timeline(1, 2, 3, 4, pending=held), options, moment)
        assert found is not None
        assert found.time == at(2)
    clean = Instant(f"{at(2)[:-1]}1", Action.CLEAN, State.REQUESTED)
    found = earliest_retained(timeline(1, 2, 3, 4, pending=clean), options, moment)
    assert found is not None
    assert found.time == at(3)
    first = Instant(at(0), Action.COMMIT, State.INFLIGHT)
    assert earliest_retained(timeline(1, 2, 3, 4, pending=first), options, moment) is None


def test_by_hours_the_retained_instant_is_the_first_commit_of_the_last_hours() -> None:
    options = CleanOptions(CleanPolicy.KEEP_LATEST_BY_HOURS, hours=5)
    moment = NOON.replace(tzinfo=None)
    found = earliest_retained(timeline(1, 6, 8), options, moment)
    assert found is not None
    assert found.time == at(8)
    assert earliest_retained(timeline(1, 6), options, moment) is None


@pytest.mark.parametrize("version", [6, 9])
def test_what_a_write_superseded_that_ended_behind_a_retained_one_stays(version: int) -> None:
    """As a compaction that took longer than the commits which are retained. Once it ended before
    all of them, it holds nothing back."""
    moment = NOON.replace(tzinfo=None)

    def retained(options: CleanOptions, *hours: int, **ends: int) -> str | None:
        found = earliest_retained(
            timeline(*hours, ends={int(key[1:]): end for key, end in ends.items()}, version=version), options, moment
        )
        return found.time if found is not None else None

    two = CleanOptions(commits=2)
    assert retained(two, 1, 2, 3, 4, 5) == at(4)
    assert retained(two, 1, 2, 3, 4, 5, b2=6) == at(1)
    assert retained(two, 1, 2, 3, 4, 5, b1=6) is None, "there is none before it"
    assert retained(two, 1, 2, 3, 4, 5, b2=6, b3=7) == at(1), "the oldest of several counts"
    assert retained(two, 1, 2, 3, 4, 5, b4=7, b3=6) == at(2), "the first of the retained to end was 5"
    assert retained(two, 1, 2, 3, 4, 5, 7, 8, b2=6) == at(7)
    hours = CleanOptions(CleanPolicy.KEEP_LATEST_BY_HOURS, hours=5)
    assert retained(hours, 1, 2, 3, 8, 9) == at(8)
    assert retained(hours, 1, 2, 3, 8, 9, b2=10) == at(1)


def test_what_only_recent_writes_superseded_is_left_to_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers that began before them may list the files now. What is pending has superseded
    nothing."""
    monkeypatch.setattr(policy, "READERS_SECONDS", 60.0)
    plan = Instant(at(5), Action.COMPACTION, State.REQUESTED)
    shown = timeline(1, 2, 3, 4, pending=plan)

    def held(found: StoredGroup, seconds: int) -> dict[int, str | None]:
        rule = Rule(versions=1, recent=recent_writes(shown, NOON.replace(hour=4) + timedelta(seconds=seconds)))
        return {int(v.slice.instant[8:10]): v.held for v in verdicts([found], rule)}

    assert held(group(1, 2, 3, 4), 59) == {3: READERS, 2: None, 1: None}
    assert held(group(1, 2, 3, 4), 60) == {3: None, 2: None, 1: None}
    assert held(group(1, 2, replaced=at(4)), 59) == {2: READERS, 1: None}
    assert held(group(1, 2, replaced=at(4)), 60) == {2: None, 1: None}
    assert held(group(3, 4, 5), 59) == {4: READERS, 3: READERS}


@pytest.mark.parametrize("action", [Action.COMMIT, Action.COMPACTION, Action.REPLACE_COMMIT])
def test_by_hours_too_nothing_after_a_pending_write_or_plan_is_the_retained_instant(action: Action) -> None:
    """Else a plan that is executed after these hours lies behind it for good, and no clean looks at
    what it replaced."""
    options = CleanOptions(CleanPolicy.KEEP_LATEST_BY_HOURS, hours=5)
    held = Instant(f"{at(2)[:-1]}1", action, State.REQUESTED)
    found = earliest_retained(timeline(1, 2, 8, 9, pending=held), options, NOON.replace(tzinfo=None))
    assert found is not None
    assert found.time == at(2)


def test_both_families_of_keys_are_read_and_must_agree() -> None:
    assert CleanOptions.parse({}) == CleanOptions()
    old = {"hoodie.cleaner.policy": "keep_latest_file_versions", "hoodie.cleaner.fileversions.retained": "7"}
    assert CleanOptions.parse(old) == CleanOptions(CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions=7)
    for key, kind in (("hoodie.cleaner.hours.retained", "HOURS"), ("hoodie.clean.fileversions.retained", "VERSIONS")):
        # As with Hudi, a number alone tells the policy; beside another one, or a policy, it tells nothing.
        told = CleanOptions.parse({key: "48"})
        assert told.policy.endswith(kind)
        assert 48 in (told.hours, told.versions)
        beside = {key: "48", "hoodie.clean.commits.retained": "4"}
        assert CleanOptions.parse(beside).policy is CleanPolicy.KEEP_LATEST_COMMITS
        chosen = {key: "48", "hoodie.clean.policy": "KEEP_LATEST_COMMITS"}
        assert CleanOptions.parse(chosen).policy is CleanPolicy.KEEP_LATEST_COMMITS
    new = {
        "hoodie.clean.commits.retained": "4",
        "hoodie.clean.trigger.max.commits": "3",
        "hoodie.clean.hours.retained": "1",
    }
    assert CleanOptions.parse(new | {"hoodie.cleaner.commits.retained": "4"}) == CleanOptions(
        commits=4, hours=1, trigger=3
    )
    with pytest.raises(
        InvalidOptionError, match=r"clean\.commits\.retained='4', hoodie\.cleaner\.commits\.retained='5'"
    ):
        CleanOptions.parse(new | {"hoodie.cleaner.commits.retained": "5"})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hoodie.clean.policy", "ALL", "'ALL' is none of KEEP_LATEST_COMMITS"),
        ("hoodie.clean.commits.retained", "0", "not a whole number from 1"),
        ("hoodie.cleaner.hours.retained", "1.5", "not a whole number from 1"),
        ("hoodie.clean.trigger.strategy", "DAILY", "cleaning is due by commits alone"),
        ("hoodie.clean.incremental.enabled", "maybe", "neither 'true' nor 'false'"),
        ("hoodie.clean.comits.retained", "1", "did you mean 'hoodie.clean.commits.retained'"),
    ],
)
def test_a_bad_option_is_refused(key: str, value: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        CleanOptions.parse({key: value})


def test_slices_hold_base_files_logs_and_change_logs_of_completed_instants_alone() -> None:
    names = [
        f"f_0-0-0_{at(1)}.parquet",
        f".f_{at(1)}.log.1_0-0-0",
        f".f_{at(1)}.log.1_0-0-0.cdc",
        f"f_0-0-0_{at(2)}.parquet",
        f".f_{at(3)}.log.1_0-0-0",
        f"f_0-0-0_{at(4)}.parquet",
        ".hoodie_partition_metadata",
    ]
    pending = Instant(at(3), Action.COMPACTION, State.REQUESTED)
    files = [ObjectInfo(f"x/{name}", 5, NOON) for name in names]
    (found,) = stored_groups(files, timeline(1, 2, pending=pending), {("x", "f"): at(2)})
    assert [(item.instant, len(item.files), item.size) for item in found.slices] == [
        (at(3), 1, 5), (at(2), 1, 5), (at(1), 3, 15),
    ]  # fmt: skip
    assert found.replaced == at(2)


CLEAN = "hoodie.clean."


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"policy": "KEEP_LATEST_BY_HOURS", "commits.retained": "5"}, ["commits.retained"]),
        ({"policy": "KEEP_LATEST_BY_HOURS", "commits.retained": "10", "hours.retained": "5"}, []),
        ({"hours.retained": "5", "fileversions.retained": "2"}, ["fileversions.retained", "hours.retained"]),
        ({"hours.retained": "5"}, []),
    ],
)
def test_a_number_that_the_policy_does_not_count_is_told_and_the_policy_holds_as_with_hudi(
    options: dict[str, str], told: list[str]
) -> None:
    given = {CLEAN + key: value for key, value in options.items()}
    assert [key for key, _ in ignored_options(given)] == [CLEAN + key for key in told]
    if told:
        assert CleanOptions.parse(given).policy == options.get("policy", "KEEP_LATEST_COMMITS")


def test_a_number_under_its_older_name_is_told_by_that_name() -> None:
    given = {"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS", "hoodie.cleaner.commits.retained": "5"}
    assert [key for key, _ in ignored_options(given)] == ["hoodie.cleaner.commits.retained"]
