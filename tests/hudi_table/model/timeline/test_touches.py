"""Conflict keys meet where two commits must not both stand."""

from __future__ import annotations

import pytest

from hudi_table.model.timeline.conflict_keys import (
    CLEANING,
    TABLE,
    bucket_conflict_key,
    file_conflict_key,
    meet,
    partition_conflict_key,
    record_conflict_key,
    record_conflict_keys,
)

P_BUCKET, P_FILE, P_KEY = bucket_conflict_key("a/b", 3), file_conflict_key("a/b", "f-0"), record_conflict_key("a/b", 7)
EVERY = (P_BUCKET, P_FILE, P_KEY, partition_conflict_key("a/b"), TABLE)


@pytest.mark.parametrize("touch", EVERY)
def test_a_touch_meets_itself_and_the_table(touch: str) -> None:
    assert meet([touch], [touch])
    assert meet([touch], [TABLE])
    assert meet([TABLE], [touch])


@pytest.mark.parametrize("touch", EVERY)
def test_nothing_meets_nothing(touch: str) -> None:
    assert not meet([touch], [])
    assert not meet([], [touch])


@pytest.mark.parametrize("touch", [P_BUCKET, P_FILE, P_KEY])
def test_a_whole_partition_meets_what_lies_in_it_and_nothing_else(touch: str) -> None:
    assert meet([partition_conflict_key("a/b")], ["other", touch])
    assert meet([touch], [partition_conflict_key("a/b")])
    assert not meet([partition_conflict_key("a")], [touch])
    assert not meet([partition_conflict_key("a/b/3")], [touch])
    assert not meet([partition_conflict_key("")], [touch])


def test_unknown_keys_meet_every_key_of_their_partition_and_no_file() -> None:
    unknown = record_conflict_keys("a/b")
    for other in (P_KEY, partition_conflict_key("a/b"), TABLE, unknown):
        assert meet([unknown], [other])
        assert meet([other], [unknown])
    for other in (
        P_FILE,
        P_BUCKET,
        record_conflict_key("a", 7),
        partition_conflict_key("a"),
        record_conflict_keys("a"),
    ):
        assert not meet([unknown], [other])


def test_what_names_no_rows_meets_itself_alone() -> None:
    assert meet([CLEANING, "instant:1"], [CLEANING, "instant:2"])
    for other in (*EVERY, partition_conflict_key(""), "instant:1"):
        assert not meet([CLEANING], [other])


def test_the_partition_of_a_table_without_partitions_is_the_empty_path() -> None:
    assert meet([partition_conflict_key("")], [bucket_conflict_key("", 1)])
    assert meet([file_conflict_key("", "f-0")], [partition_conflict_key("")])


def test_different_places_do_not_meet() -> None:
    places = [
        P_BUCKET,
        bucket_conflict_key("a/b", 4),
        bucket_conflict_key("a", 3),
        P_FILE,
        P_KEY,
        record_conflict_key("a/b", 8),
        partition_conflict_key("c"),
    ]
    for left in places:
        for right in places:
            assert meet([left], [right]) == (left == right)
