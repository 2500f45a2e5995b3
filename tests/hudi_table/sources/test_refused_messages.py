"""Messages that are not taken, as rows of an error table. How ingests keep them is tested on a real
broker, in tests/streams."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from hudi_table.sources.kafka.consume import Messages
from hudi_table.sources.kafka.refusing import ERROR_KEY, ERROR_SCHEMA, KafkaOrigin
from hudi_table.sources.kafka.where import Where

ABSENT = -1
"""What the client tells where a message has no timestamp."""


def origin(messages: Messages) -> KafkaOrigin:
    return KafkaOrigin(messages, Where(messages), np.array([2, 0, 1]), "feed", "run-1", {"orders": "Xq"})


def messages() -> Messages:
    return Messages(
        [("orders", 3), ("returns", 0)],
        [b"{", b"[1]", None],
        [np.array([0, 0], np.int32), np.array([1], np.int32)],
        [np.array([7, 9]), np.array([4])],
        [np.array([0, ABSENT]), np.array([1_800_000_000_123])],
        [b"k", None, b"other"],
    )


def test_a_row_stands_for_the_message_of_its_place_with_its_reason_and_bytes() -> None:
    found = origin(messages()).refused([0, 1], ["is a tombstone", "is no json"], ["sound", "sound"]).to_pylist()
    assert found == [
        {
            "ingest": "feed", "topic": "returns", "topic_id": "", "partition": 0, "offset": 4,
            "timestamp": datetime(2027, 1, 15, 8, 0, 0, 123_000, UTC), "rule": "sound", "reason": "is a tombstone",
            "key": b"other", "value": None, "attempt": "run-1",
        },
        {
            "ingest": "feed", "topic": "orders", "topic_id": "Xq", "partition": 3, "offset": 7,
            "timestamp": datetime(1970, 1, 1, tzinfo=UTC), "rule": "sound", "reason": "is no json",
            "key": b"k", "value": b"{", "attempt": "run-1",
        },
    ]  # fmt: skip


def test_a_message_without_a_timestamp_has_none() -> None:
    assert origin(messages()).refused([2], [""], [""])["timestamp"].to_pylist() == [None]


def test_what_a_row_is_found_by_is_never_null() -> None:
    assert [field.name for field in ERROR_SCHEMA if not field.nullable] == list(ERROR_KEY)


def test_no_message_gives_no_row() -> None:
    none = origin(Messages([("orders", 0)])).table([], [], [])
    assert (none.schema, none.num_rows) == (ERROR_SCHEMA, 0)
