"""What of a table an API server lets change: its CEL rules that compare an update with what was
there."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.parsing import parse
from hudi_operator.api.table import HudiTableSpec
from hudi_table.model.table.config import IndexType
from tests.hudi_operator.api.test_crds import judged
from tests.support.manifests import spec


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"location": "s3://lake/other"}, "location cannot change"),
        ({"type": "MergeOnRead"}, "type cannot change"),
        ({"recordKey": ["id", "day"]}, "recordKey cannot change"),
        ({"partitionBy": [{"field": "day"}]}, "partitionBy cannot change"),
        ({"orderingFields": ["other"]}, "orderingFields cannot change"),
        ({"paths": {"hiveStyle": True}}, "paths cannot change"),
        ({"index": {"type": "Bucket", "buckets": 4, "hashFields": ["id"]}}, "only buckets can change"),
        ({"index": {"type": "Simple"}}, "only buckets can change"),
        ({"index": None}, "only buckets can change"),
        (
            {"index": {"type": "Bucket", "buckets": 4, "partitionBuckets": [{"partitions": "a", "buckets": 2}]}},
            "only buckets can change",
        ),
        ({"mergeMode": "CommitTime"}, "mergeMode cannot change"),
    ],
)
def test_the_api_server_refuses_to_change_what_a_table_is(changes: dict[str, Any], words: str) -> None:
    old = spec()
    assert any(words in error for error in judged("HudiTable", spec(**changes), old))


def test_the_api_server_refuses_another_table_version_and_takes_one_that_is_named_late() -> None:
    assert judged("HudiTable", spec(tableVersion=9), spec(tableVersion=8)) == []
    assert judged("HudiTable", spec(tableVersion=9), spec()) == []


def test_the_api_server_lets_change_what_may_change() -> None:
    assert judged("HudiTable", spec(suspend=True, options={"hoodie.parquet.max.file.size": "1"}), spec()) == []
    assert judged("HudiTable", spec(index={"type": "Bucket", "buckets": 8}), spec()) == []
    assert judged("HudiTable", spec(mergeMode=None), spec()) == []
    assert judged("HudiTable", spec(), spec(mergeMode=None)) == []


RING = {"type": "ConsistentBucket", "buckets": 4}


@pytest.mark.parametrize("one", [kind for kind in IndexType if not kind.hashes and kind is not IndexType.CUSTOM])
@pytest.mark.parametrize("other", [kind for kind in IndexType if not kind.hashes and kind is not IndexType.CUSTOM])
def test_the_api_server_lets_an_index_become_what_a_table_can_follow(one: IndexType, other: IndexType) -> None:
    said = judged("HudiTable", spec(index={"type": other.value}), spec(index={"type": one.value}))
    assert bool(said) != one.can_become(other)
    assert all("can change only among" in each for each in said)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (RING, {**RING, "buckets": 8}, "only minBuckets and maxBuckets"),
        (RING, {"type": "Simple"}, "only minBuckets and maxBuckets"),
        ({"type": "Simple"}, {"type": "Bucket", "buckets": 4}, "can change only among"),
        ({"type": "Custom", "className": "a"}, {"type": "Custom", "className": "b"}, "className cannot change"),
    ],
)
def test_the_api_server_refuses_another_index_by_name(old: dict[str, Any], new: dict[str, Any], words: str) -> None:
    merge = {"type": "MergeOnRead"}
    assert any(words in error for error in judged("HudiTable", spec(index=new, **merge), spec(index=old, **merge)))
    assert judged("HudiTable", spec(index={**RING, "maxBuckets": 9}, **merge), spec(index=RING, **merge)) == []


def test_the_api_server_takes_no_launcher_that_is_for_a_machine_alone() -> None:
    (said,) = judged("HudiTable", spec(spark={"launcher": "Local"}))
    assert "in a cluster use Auto or Job" in said
    assert parse(HudiTableSpec, spec(spark={"launcher": "Local"}), "spec")[1] == ()
