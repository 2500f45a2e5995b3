"""Which topics a pattern names, whatever the pattern is: it is text of a manifest, and the operator
of all tenants matches it."""

from __future__ import annotations

import pytest

from hudi_table.errors import InvalidRequestError
from hudi_table.sources.kafka.settings import KafkaSettings


def settings(pattern: str) -> KafkaSettings:
    return KafkaSettings.of({"format": "json", "kafka": {"brokers": "kafka:9092", "topicPattern": pattern}})


@pytest.mark.parametrize(
    ("pattern", "topic", "named"),
    [
        ("orders-.*", "orders-1", True),
        ("orders", "orders-1", False),
        ("rders", "orders", False),
        ("a|b", "ab", False),
        ("a|b", "b", True),
        ("(?i)ORDERS", "orders", True),
        (".*", "__consumer_offsets", False),
    ],
)
def test_a_pattern_names_whole_topics_and_none_of_kafkas_own(pattern: str, topic: str, named: bool) -> None:
    assert settings(pattern).matches(topic) is named


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", ["([a-z]+)+!", "(a|a)*!", "(.*a){12}!"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert not settings(pattern).matches("a" * 249)


@pytest.mark.parametrize("pattern", ["*", "a)|(b", "(?!orders).*", r"(a)\1", r"\Qorders", "((a{100}){100}){100}"])
def test_what_is_no_pattern_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"kafka\.topicPattern .* is no regular expression"):
        settings(pattern)
