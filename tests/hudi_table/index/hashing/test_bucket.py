"""The bucket index: where keys go, and what contradicts it. The hash itself is held against Hudi's
vectors elsewhere."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.errors import CorruptTableError
from hudi_table.index.base import Keys, Slot
from hudi_table.index.hashing.bucket import BucketIndex
from hudi_table.model.names import bucket_of_file_id
from hudi_table.table.view.file_system_view import FileSlice
from tests.support.written import contents, new_table, rows, slices

INDEX = BucketIndex(4, ("id",), ("id",))


def keys(*items: tuple[str, str]) -> Keys:
    paths = tuple(dict.fromkeys(path for _, path in items))
    codes = np.array([paths.index(path) for _, path in items], dtype=np.int32)
    return Keys(pa.array([key for key, _ in items], pa.string()), paths, codes)


def places(index: BucketIndex, *items: tuple[str, str]) -> list[Slot]:
    routed = index.route(keys(*items))
    return [routed.slots[code] for code in routed.codes]


def test_a_key_goes_to_the_bucket_of_its_hash_in_its_own_partition() -> None:
    assert places(INDEX, ("k000", "p"), ("k001", "q"), ("k000", "q"), ("uuid-1234", "p")) == [
        Slot("p", bucket=0), Slot("q", bucket=1), Slot("q", bucket=0), Slot("p", bucket=3),
    ]  # fmt: skip


def test_only_slots_that_rows_go_to_are_named() -> None:
    assert INDEX.route(keys(("k000", "p"))).slots == (Slot("p", bucket=0),)
    assert INDEX.route(keys()).slots == ()


def test_a_subset_of_the_key_decides_the_bucket() -> None:
    index = BucketIndex(256, ("id", "name"), ("id",))
    assert places(index, ("id:k000,name:name0_0", ""), ("id:k000,name:other", "")) == [Slot("", bucket=4)] * 2


@pytest.mark.parametrize(("rule", "bucket"), [("0.15", 1), ("1.x", 168)])
def test_a_key_with_a_colon_follows_the_recorded_rule(rule: str, bucket: int) -> None:
    assert places(BucketIndex(256, ("id",), ("id",), rule), ("a:b", "")) == [Slot("", bucket=bucket)]


@pytest.mark.parametrize(("rule", "number"), [("0.15", 1), ("1.x", 168)])
def test_the_rule_for_colons_is_recorded_with_the_table_and_followed_by_its_writes(rule: str, number: int) -> None:
    options = {"hoodie.lakeops.bucket.colon.rule": rule}
    table = new_table(index={"type": "Bucket", "buckets": 256}, options=options)
    assert table.context.config.extra["hoodie.lakeops.bucket.colon.rule"] == rule
    table.insert(rows(("a:b", "x", 1)))
    table.upsert(rows(("a:b", "x", 2)))
    assert contents(table) == [("a:b", "x", 2)]
    assert [bucket_of_file_id(item.file_id) for item in slices(table)] == [number]


def test_groups_are_found_by_their_bucket() -> None:
    first, second = FileSlice("p", "00000001-a-0", "1", None), FileSlice("q", "00000001-b-0", "1", None)
    assert INDEX.groups([first, second]) == {Slot("p", bucket=1): first, Slot("q", bucket=1): second}


@pytest.mark.parametrize("strange", ["00000004-a-0", "9ac041f0-8ba1-0"])
def test_a_file_group_of_no_bucket_is_reported(strange: str) -> None:
    with pytest.raises(CorruptTableError, match=strange):
        INDEX.groups([FileSlice("p", strange, "1", None)])


def test_two_groups_of_one_bucket_are_reported_by_name() -> None:
    with pytest.raises(CorruptTableError, match="00000001-a-0 and 00000001-b-0"):
        INDEX.groups([FileSlice("p", "00000001-a-0", "1", None), FileSlice("p", "00000001-b-0", "1", None)])
