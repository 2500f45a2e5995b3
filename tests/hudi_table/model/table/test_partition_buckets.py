"""Numbers of buckets by partition: the first expression that is found in the path counts, as in
Apache Hudi 1.1.1."""

from __future__ import annotations

import pytest

from hudi_table.model.table.config import IndexSpec, IndexType
from hudi_table.model.table.index_properties import index_properties, index_spec
from hudi_table.model.table.partition_buckets import buckets_in, parse_rules, render_rules


def test_the_first_expression_that_is_found_anywhere_in_the_path_counts() -> None:
    # Apache Hudi 1.1.1 wrote these partitions into so many buckets, by this text and the default of 2.
    rules = parse_rules("(sf|la).*,5;b.*,3")
    assert {name: buckets_in(name, rules, 2) for name in ("sf", "alamo", "bern", "xx")} == {
        "sf": 5,
        "alamo": 5,
        "bern": 3,
        "xx": 2,
    }


def test_commas_of_an_expression_stay_in_it() -> None:
    text = r"\d{4}-(06|11)-\d{1,2},16;2024,8"
    rules = parse_rules(text)
    assert rules == ((r"\d{4}-(06|11)-\d{1,2}", 16), ("2024", 8))
    assert render_rules(rules) == text
    assert [buckets_in(day, rules, 4) for day in ("2024-06-01", "2024-07-01", "2023-07-01")] == [16, 8, 4]


@pytest.mark.parametrize("text", ["a", ",5", "a,", "a,x", "a,0", "(,3", "a,3;b"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_rules(text)


@pytest.mark.parametrize(
    "spec",
    [
        IndexSpec(IndexType.BUCKET, 4, ("a", "b")),
        IndexSpec(IndexType.BUCKET, 4, partition_buckets=(("2024-.*", 16),)),
        IndexSpec(IndexType.CONSISTENT_BUCKET, 4, ("a",), buckets_min=2, buckets_max=64),
        IndexSpec(IndexType.CONSISTENT_BUCKET, 4),
        IndexSpec(IndexType.SIMPLE),
    ],
)
def test_an_index_is_read_as_it_was_stored(spec: IndexSpec) -> None:
    assert index_spec(index_properties(spec)) == spec


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.bucket.index.num.buckets": "x"}, "num.buckets"),
        ({}, "num.buckets"),
        ({"hoodie.bucket.index.num.buckets": "4", "hoodie.bucket.index.partition.rule.type": "glob"}, "glob"),
        ({"hoodie.bucket.index.num.buckets": "4", "hoodie.bucket.index.partition.expressions": "a"}, "expressions"),
        (
            {
                "hoodie.bucket.index.num.buckets": "4",
                "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
                "hoodie.bucket.index.max.num.buckets": "3",
            },
            "max.num.buckets",
        ),
    ],
)
def test_a_wrong_key_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        index_spec({"hoodie.index.type": "BUCKET"} | options)


@pytest.mark.parametrize(
    "options", [{"hoodie.index.type": "HBASE"}, {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "X"}]
)
def test_an_index_that_is_not_known_is_told_apart(options: dict[str, str]) -> None:
    with pytest.raises(KeyError):
        index_spec({"hoodie.bucket.index.num.buckets": "4"} | options)
