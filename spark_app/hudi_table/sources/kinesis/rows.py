"""Records as rows: their data decoded, metadata columns beside them; and those that are not taken,
as rows of an error table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidDataError
from hudi_table.sources.formats.decoder import Decoder
from hudi_table.sources.formats.values import Fault, Values, check_reserved, of_values
from hudi_table.sources.kinesis.reading import Messages
from hudi_table.sources.kinesis.settings import KinesisSettings

PREFIX = "_kinesis_"
AGGREGATED = b"\xf3\x89\x9a\xc2"
"""With these bytes a record begins that the Kinesis Producer Library made of several."""
_AGGREGATED_WORDS = (
    "holds several records of the Kinesis Producer Library: let the producer send each alone (AggregationEnabled=false)"
)
METADATA_TYPES = {
    "stream": pa.string(),
    "shard": pa.string(),
    "sequence": pa.string(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "key": pa.string(),
}
ERROR_SCHEMA = pa.schema(
    [
        pa.field("ingest", pa.string(), nullable=False),
        pa.field("stream", pa.string(), nullable=False),
        pa.field("stream_id", pa.string(), nullable=False),
        pa.field("shard", pa.string(), nullable=False),
        pa.field("sequence", pa.string(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("rule", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("key", pa.string()),
        pa.field("value", pa.binary()),
        pa.field("attempt", pa.string()),
    ]
)
"""Of an error table, as that of topics of Kafka."""
ERROR_KEY = ("ingest", "stream", "stream_id", "shard", "sequence")
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Where:
    """Where records stand, and what is known of them beside their data."""

    stream: str
    messages: Messages

    def name(self, row: int) -> str:
        """A record in words."""
        found = self.messages
        return f"the record of stream {self.stream}, shard {found.shards[row]}, sequence number {found.sequences[row]}"

    def column(self, name: str, order: Places) -> pa.Array:
        """A metadata column of the records in this order."""
        if name == "stream":
            return pa.repeat(pa.scalar(self.stream), len(order))
        found = self.messages
        values = {"shard": found.shards, "sequence": found.sequences, "timestamp": found.times, "key": found.keys}
        kind = pa.int64() if name == "timestamp" else pa.string()
        return pa.array(values[name], kind).take(pa.array(order)).cast(METADATA_TYPES[name])


@dataclass(frozen=True, slots=True)
class KinesisOrigin:
    """Of rows that were made of records: `order` is the place of each row's record."""

    where: Where
    order: Places
    ingest: str
    attempt: str
    stream_id: str

    def place(self, row: int) -> str:
        """See `Origin`."""
        return self.where.name(int(self.order[row]))

    def refused(self, rows: Sequence[int], reasons: Sequence[str], rules: Sequence[str]) -> pa.Table:
        """See `Origin`."""
        return self.table([int(self.order[row]) for row in rows], reasons, list(rules))

    def table(self, places: Sequence[int], reasons: Sequence[str], rules: Sequence[str | None]) -> pa.Table:
        """Records at these places as rows of an error table."""
        order, count = np.array(places, np.int64), len(places)
        columns = {
            "ingest": pa.repeat(pa.scalar(self.ingest), count),
            "stream_id": pa.repeat(pa.scalar(self.stream_id), count),
            "rule": pa.array(rules, pa.string()),
            "reason": pa.array(reasons, pa.string()),
            "value": pa.array([self.where.messages.values[place] for place in places], pa.binary()),
            "attempt": pa.repeat(pa.scalar(self.attempt), count),
            **{name: self.where.column(name, order) for name in METADATA_TYPES},
        }
        return pa.table({name: columns[name] for name in ERROR_SCHEMA.names}).cast(ERROR_SCHEMA)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows, the place of each row's record, and the records that cannot be read."""

    table: pa.Table
    order: Places
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How records become rows. `error_ratio`: a record that cannot be read is reported instead of
    raised, up to this part of those of one commit; None: it is raised."""

    settings: KinesisSettings
    decoder: Decoder
    error_ratio: float | None = None

    def rows(self, messages: Messages, known: pa.Schema | None, where: Where) -> Decoded:
        """One row for each record that is one. Raises InvalidDataError that names stream, shard and
        sequence number."""
        values = Values(self.decoder, self.settings.format, where.name, self.error_ratio)
        faults: list[Fault] = []
        kept = self._single(messages, where, values, faults)
        table, order = values.rows(messages.values, kept, of_values(known, PREFIX), faults)
        check_reserved(table, PREFIX, f"stream {self.settings.stream}")
        for name in self.settings.metadata:
            table = table.append_column(PREFIX + name, where.column(name, order))
        return Decoded(table, order, tuple(faults))

    def _single(self, messages: Messages, where: Where, values: Values, faults: list[Fault]) -> Places:
        """The places of records that are one; the others are reported."""
        starts = pc.binary_slice(pa.array(messages.values, pa.binary()), 0, len(AGGREGATED))
        several = np.asarray(pc.equal(starts, pa.scalar(AGGREGATED)).to_numpy(zero_copy_only=False), bool)
        places = np.flatnonzero(several).tolist()
        if places and self.error_ratio is None:
            raise InvalidDataError(f"{where.name(places[0])} {_AGGREGATED_WORDS}")
        if len(places) > values.most(len(messages.values)):
            raise values.too_many(places[0], _AGGREGATED_WORDS)
        faults += [Fault(place, _AGGREGATED_WORDS) for place in places]
        return np.flatnonzero(~several)
