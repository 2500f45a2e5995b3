"""Slices of tables whose instants tell when they completed: a log belongs to the newest slice that
began before its instant completed."""

from __future__ import annotations

from datetime import UTC, datetime

from hudi_table.model.table.layouts import LAYOUT_2
from hudi_table.model.timeline.instants import Instant, parse_instant
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_groups import FileSlice, groups_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ID = "5f1d5f55-0000-4000-8000-000000000000-0"


def at(number: int) -> str:
    return f"2026010100000{number:04d}"


def timeline(*names: str) -> Timeline:
    found = [parse_instant(name) for name in names]
    instants = tuple(sorted((i for i in found if i is not None), key=lambda i: i.sort_key))
    assert len(instants) == len(names)
    return Timeline(instants, dict.fromkeys(names, NOW), layout=LAYOUT_2)


def completed(begun: int, done: int, action: str = "deltacommit") -> str:
    return f"{at(begun)}_{at(done)}.{action}"


def base(begun: int) -> ObjectInfo:
    return ObjectInfo(f"p/{ID}_0-1-0_{at(begun)}.parquet", 10, NOW)


def log(begun: int, version: int = 1, suffix: str = "") -> ObjectInfo:
    return ObjectInfo(f"p/.{ID}_{at(begun)}.log.{version}_0-2-0{suffix}", 5, NOW)


def slices(
    files: list[ObjectInfo], instants: Timeline, as_of: int | None = None, **more: str
) -> list[tuple[int, bool, list[int]]]:
    """Of each slice its instant, whether it has a base file, and the instants of its logs."""
    limit = None if as_of is None else at(as_of)
    groups = groups_of(files, instants, limit, archived=lambda: {at(int(k[1:])): v for k, v in more.items()})
    return [
        (int(item.instant[-4:]), item.base is not None, [int(log.name.base_instant[-4:]) for log in item.logs])
        for found in groups.values()
        for group in found
        for item in group.slices
    ]


def test_a_log_that_completed_before_a_compaction_began_lies_on_the_slice_before() -> None:
    instants = timeline(completed(1, 2), completed(3, 4), completed(5, 8, "commit"), completed(9, 10))
    assert slices([base(1), log(3), base(5), log(9)], instants) == [(1, True, [3]), (5, True, [9])]


def test_a_log_that_was_requested_before_a_compaction_and_completed_after_it_began_lies_on_the_new_slice() -> None:
    instants = timeline(completed(1, 2), completed(3, 9), completed(5, 8, "commit"))
    assert slices([base(1), log(3), base(5)], instants) == [(1, True, []), (5, True, [3])]


def test_logs_of_a_slice_are_in_the_order_of_their_requests_also_where_they_completed_in_another() -> None:
    instants = timeline(completed(1, 2), completed(3, 9), completed(4, 6))
    found = groups_of([base(1), log(4), log(3, 2), log(3)], instants)
    (item,) = (group.latest for group in found["p"])
    assert [(each.name.base_instant, each.name.version) for each in item.logs] == [(at(3), 1), (at(3), 2), (at(4), 1)]


def test_files_of_instants_that_have_not_completed_count_for_nothing() -> None:
    pending = f"{at(5)}.deltacommit.inflight"
    assert slices([base(1), log(5), log(6)], timeline(completed(1, 2), pending)) == [(1, True, [])]


def test_a_pending_write_before_the_first_completed_one_is_no_archived_instant() -> None:
    instants = timeline(f"{at(1)}.deltacommit.inflight", completed(3, 4))
    assert instants.start == at(1)
    assert slices([base(1), log(3)], instants) == [(3, False, [3])]


def test_what_a_savepoint_keeps_does_not_begin_the_timeline() -> None:
    instants = timeline(completed(1, 2), completed(1, 3, "savepoint"), completed(7, 8))
    assert instants.start == at(7)
    # The instant 5 lay between them and has been archived.
    assert slices([base(5)], instants) == [(5, True, [])]


def test_a_group_without_base_file_has_the_slice_of_its_first_log() -> None:
    instants = timeline(completed(1, 2), completed(3, 4))
    assert slices([log(1), log(3)], instants) == [(1, False, [1, 3])]


def test_a_pending_compaction_makes_no_slice() -> None:
    instants = timeline(completed(1, 2), f"{at(3)}.compaction.requested", completed(4, 5))
    assert slices([base(1), log(4)], instants) == [(1, True, [4])]


def test_logs_of_version_6_that_are_named_by_a_pending_compaction_are_read() -> None:
    instants = timeline(completed(1, 2), f"{at(3)}.compaction.requested", completed(4, 5))
    assert slices([base(1), log(1), log(3)], instants) == [(1, True, [1, 3])]


def test_the_archive_tells_when_an_old_log_completed_where_that_matters() -> None:
    instants = timeline(completed(20, 21))
    files = [base(2), log(3), base(5)]
    assert slices(files, instants, t3=at(4)) == [(2, True, [3]), (5, True, [])]
    assert slices(files, instants, t3=at(6)) == [(2, True, []), (5, True, [3])]


def test_the_archive_is_asked_once_however_many_logs_want_it() -> None:
    asked: list[int] = []

    def archived() -> dict[str, str]:
        asked.append(1)
        return {at(3): at(4), at(4): at(4)}

    groups_of([base(2), log(3), log(4), base(5)], timeline(completed(20, 21)), archived=archived)
    assert asked == [1]


def test_the_archive_is_not_asked_for_a_log_behind_the_newest_base_file() -> None:
    def fail() -> dict[str, str]:
        raise AssertionError

    found = groups_of([base(2), log(3)], timeline(completed(20, 21)), archived=fail)
    assert [len(group.latest.logs) for group in found["p"]] == [1]


def test_change_data_logs_make_no_slice() -> None:
    assert slices([base(1), log(1, suffix=".cdc")], timeline(completed(1, 2))) == [(1, True, [])]


def test_a_moment_shows_what_had_been_requested_by_then() -> None:
    instants = timeline(completed(1, 2), completed(3, 4), completed(5, 6, "commit"), completed(7, 8))
    files = [base(1), log(3), base(5), log(7)]
    assert slices(files, instants, as_of=4) == [(1, True, [3])]
    assert slices(files, instants, as_of=6) == [(1, True, [3]), (5, True, [])]


def test_the_end_of_a_range_shows_what_had_completed_by_then() -> None:
    instants = timeline(completed(1, 2), completed(3, 9), completed(4, 6))
    then, as_of = instants.at(at(7))
    found = groups_of([base(1), log(3), log(4)], then, as_of)
    assert [each.name.base_instant for each in found["p"][0].latest.logs] == [at(4)]
    assert isinstance(found["p"][0].latest, FileSlice)


def test_a_completed_name_tells_both_times_and_is_made_again() -> None:
    instant = parse_instant(completed(1, 2, "replacecommit"))
    assert isinstance(instant, Instant)
    assert (instant.time, instant.completion, instant.moment) == (at(1), at(2), at(2))
    assert instant.file_name == completed(1, 2, "replacecommit")
    assert parse_instant(f"{at(1)}_{at(2)}.deltacommit.inflight") is None
    assert parse_instant(f"{at(1)}_{at(2)}.inflight") is None


def test_what_follows_a_snapshot_begins_before_the_first_write_that_it_does_not_show() -> None:
    instants = timeline(completed(1, 2), completed(3, 9), completed(4, 6), completed(5, 7))
    assert instants.reached(instants) == at(9)
    assert instants.reached(instants.until(at(3))) == at(2)
    assert instants.reached(instants.at(at(7))[0]) == at(7)
