"""Where messages stand: in words, and as the columns that an ingest may have beside those of the
values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.sources.kafka.consume import Messages

PREFIX = "_kafka_"
_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
METADATA_TYPES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "key": pa.binary(),
    "headers": pa.list_(pa.field("element", _HEADER)),
}


class Where:
    """Where messages stand, and what is known of them beside their values. `partitions`: how many
    the source has."""

    def __init__(self, messages: Messages, partitions: int = 1) -> None:
        self.messages = messages
        self.partitions = partitions
        self.places = np.concatenate(messages.places) if messages.places else np.zeros(0, np.int32)
        self.offsets = np.concatenate(messages.offsets) if messages.offsets else np.zeros(0, np.int64)

    def name(self, row: int) -> str:
        """A message in words."""
        topic, partition = self.messages.names[int(self.places[row])]
        return f"the message of topic {topic}, partition {partition}, offset {self.offsets[row]}"

    def old_keys(self, order: npt.NDArray[np.int64]) -> pa.Array:
        """What the headers of messages in this order say of the keys before."""
        if not self.messages.old_keys:
            return pa.nulls(len(order), pa.binary())
        return pa.array(self.messages.old_keys, pa.binary()).take(pa.array(order))

    def column(self, name: str, order: npt.NDArray[np.int64]) -> pa.Array:
        """A metadata column of the messages in this order."""
        names = self.messages.names
        if name == "topic":
            return pa.array([topic for topic, _ in names], pa.string()).take(pa.array(self.places[order]))
        if name == "partition":
            return pa.array([partition for _, partition in names], pa.int32()).take(pa.array(self.places[order]))
        if name == "offset":
            return pa.array(self.offsets[order])
        if name == "timestamp":
            times = np.concatenate(self.messages.times) if self.messages.times else self.offsets
            return pa.array(times[order], mask=times[order] < 0).cast(METADATA_TYPES[name])
        if name == "key":
            return pa.array(self.messages.keys, pa.binary()).take(pa.array(order))
        # Each header is a pair of the client's; rows without any have none.
        pairs = [None if h is None else [{"key": k, "value": v} for k, v in h] for h in self.messages.headers]
        return pa.array(pairs, METADATA_TYPES[name]).take(pa.array(order))
