"""Which slices are outdated, and what holds them back: the rules alone, on groups made by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import ignored_options
from hudi_table.model.options.retention import CleanPolicy
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.cleaning.policy import CleanOptions, Rule, earliest_retained, verdicts
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


def timeline(*hours: int, pending: Instant | None = None) -> Timeline:
    instants = [Instant(at(hour), Action.COMMIT, State.COMPLETED) for hour in hours]
    found = [*instants, *([pending] if pending else [])]
    return Timeline(tuple(sorted(found, key=lambda i: i.sort_key)))


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


def test_both_families_of_keys_are_read_and_must_agree() -> None:
    assert CleanOptions.parse({}) == CleanOptions()
    old = {"hoodie.cleaner.policy": "keep_latest_file_versions", "hoodie.cleaner.fileversions.retained": "7"}
    assert CleanOptions.parse(old) == CleanOptions(CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions=7)
    for key, policy in (("hoodie.cleaner.hours.retained", "HOURS"), ("hoodie.clean.fileversions.retained", "VERSIONS")):
        # As with Hudi, a number alone tells the policy; beside another one, or a policy, it tells nothing.
        told = CleanOptions.parse({key: "48"})
        assert told.policy.endswith(policy)
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
