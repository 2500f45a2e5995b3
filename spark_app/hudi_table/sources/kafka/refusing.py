"""Messages that are not taken, as rows of an error table: where they stand, why, and their
bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.sources.kafka.consume import Messages
from hudi_table.sources.kafka.where import Where

ERROR_SCHEMA = pa.schema(
    [
        pa.field("ingest", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("rule", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("attempt", pa.string()),
    ]
)
"""Of an error table. `rule`: name of the expectation that a row did not meet, null where a message
could not be read."""
ERROR_KEY = ("ingest", "topic", "topic_id", "partition", "offset")


@dataclass(frozen=True, slots=True)
class KafkaOrigin:
    """Of rows that were made of `messages`: `order` is the place of each row's message."""

    messages: Messages
    where: Where
    order: npt.NDArray[np.int64]
    ingest: str
    attempt: str
    topic_ids: Mapping[str, str]

    def place(self, row: int) -> str:
        """See `Origin`."""
        return self.where.name(int(self.order[row]))

    def refused(self, rows: Sequence[int], reasons: Sequence[str], rules: Sequence[str]) -> pa.Table:
        """See `Origin`."""
        return self.table([int(self.order[row]) for row in rows], reasons, list(rules))

    def table(self, places: Sequence[int], reasons: Sequence[str], rules: Sequence[str | None]) -> pa.Table:
        """Messages at these places as rows of an error table."""
        order = np.array(places, np.int64)
        topics = self.where.column("topic", order)
        keys = self.messages.keys
        columns = {
            "ingest": [self.ingest] * len(places),
            "topic": topics,
            "topic_id": [self.topic_ids.get(name, "") for name in topics.to_pylist()],
            "partition": self.where.column("partition", order),
            "offset": self.where.column("offset", order),
            "timestamp": self.where.column("timestamp", order),
            "rule": list(rules),
            "reason": list(reasons),
            "key": [keys[place] for place in places] if keys else [None] * len(places),
            "value": [self.messages.values[place] for place in places],
            "attempt": [self.attempt] * len(places),
        }
        return pa.table(columns).cast(ERROR_SCHEMA)
