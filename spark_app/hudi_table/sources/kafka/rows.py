"""Messages as rows: values decoded, tombstones as asked for, metadata columns beside them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, InvalidSchemaError
from hudi_table.model.names import ALL_META_COLUMNS, IS_DELETED
from hudi_table.sources.formats.decoder import Decoder, UndecodableError
from hudi_table.sources.kafka.consume import Messages
from hudi_table.sources.kafka.settings import KafkaSettings

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
CHUNK_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Decoding:
    """How messages become rows. `record_key` and `needed`: the columns of the record key, and those that a delete needs, the partition's
    among them. `keys` decodes the keys of tombstones; None: a key is the text of the record key's one column."""

    settings: KafkaSettings
    values: Decoder
    keys: Decoder | None
    needed: tuple[str, ...]

    def rows(self, messages: Messages, known: pa.Schema | None) -> pa.Table:
        """One row for each message that is one. Raises InvalidDataError that names topic, partition and offset."""
        where = _Where(messages)
        gone = np.fromiter((value is None for value in messages.values), bool, len(messages.values))
        if gone.any() and self.settings.tombstones == "Refuse":
            raise InvalidDataError(
                f"{where.name(int(np.flatnonzero(gone)[0]))} is a tombstone (a null value), and kafka.tombstones is Refuse: give Delete or Ignore"
            )
        kept = np.flatnonzero(~gone)
        wanted = _of_values(known)
        table = self._decoded(messages, kept, wanted, where)
        order = kept
        if self.settings.tombstones == "Delete":
            table, order = self._with_deletes(table, messages, kept, np.flatnonzero(gone), wanted, where)
        return self._with_metadata(table, order, where)

    def _decoded(
        self, messages: Messages, kept: npt.NDArray[np.int64], wanted: pa.Schema | None, where: _Where
    ) -> pa.Table:
        values = messages.values
        found = []
        places = kept.tolist()
        for start, stop in _chunks([values[place] for place in places]):
            some = [value for place in places[start:stop] if (value := values[place]) is not None]
            try:
                found.append(self.values.decode(some, wanted))
            except UndecodableError as error:
                raise InvalidDataError(
                    f"{where.name(places[start + error.place])} cannot be read as {self.settings.format}: {error.why}"
                ) from error
        table = _joined(found, wanted)
        reserved = [
            name for name in table.column_names if name.startswith(PREFIX) or name in (IS_DELETED, *ALL_META_COLUMNS)
        ]
        if reserved:
            raise InvalidSchemaError(
                f"the messages of {', '.join(sorted({topic for topic, _ in messages.names}))} have a field {reserved[0]!r}, a name that the "
                "ingest or Hudi uses itself: rename it at the producer"
            )
        return table

    def _with_deletes(
        self,
        table: pa.Table,
        messages: Messages,
        kept: npt.NDArray[np.int64],
        gone: npt.NDArray[np.int64],
        wanted: pa.Schema | None,
        where: _Where,
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The rows with the column that flags deletes, those of the tombstones at their places."""
        rows = table.append_column(IS_DELETED, pa.array(np.zeros(len(table), bool)))
        if not len(gone):
            return rows, kept
        keys = self._keys(messages, gone, wanted if wanted is not None else table.schema, where)
        schema = pa.schema([*rows.schema, *(f for f in keys.schema if f.name not in rows.schema.names)])
        flagged = keys.append_column(IS_DELETED, pa.array(np.ones(len(keys), bool)))
        joined = pa.concat_tables([conform(rows, schema), conform(flagged, schema)])
        order = np.concatenate([kept, gone])
        by_place = np.argsort(order, kind="stable")
        return joined.take(pa.array(by_place)), order[by_place]

    def _keys(self, messages: Messages, gone: npt.NDArray[np.int64], known: pa.Schema, where: _Where) -> pa.Table:
        """The key columns of tombstones."""
        places = gone.tolist()
        keys = [messages.keys[place] for place in places]
        for place, key in zip(places, keys, strict=True):
            if key is None:
                raise InvalidDataError(
                    f"{where.name(place)} is a tombstone without a key: nothing says which row it deletes"
                )
        wanted = pa.schema([known.field(name) for name in self.needed if name in known.names])
        try:
            if self.keys is None:
                text = pa.array(keys, pa.binary()).cast(pa.string())
                kind = wanted.field(self.needed[0]).type if wanted.names else pa.string()
                return pa.table({self.needed[0]: text.cast(kind)})
            found = self.keys.decode([key for key in keys if key is not None], wanted)
        except UndecodableError as error:
            raise InvalidDataError(
                f"the key of {where.name(places[error.place])} cannot be read as {self.settings.key_format}: {error.why}"
            ) from error
        except pa.ArrowInvalid as error:
            raise InvalidDataError(
                f"the key of {where.name(places[0])} or of a tombstone behind it is no record key: {error}"
            ) from error
        missing = [name for name in self.needed if name not in found.column_names]
        for name in missing:
            found = found.append_column(name, pa.nulls(len(found)))
        for name in self.needed:
            null = found.column(name).is_null().index(pa.scalar(True)).as_py()
            if null >= 0:
                raise InvalidDataError(
                    f"the key of {where.name(places[null])} has no {name}, which a delete needs: the record key and the partition"
                )
        return found.select(list(self.needed))

    def _with_metadata(self, table: pa.Table, order: npt.NDArray[np.int64], where: _Where) -> pa.Table:
        for name in self.settings.metadata:
            table = table.append_column(PREFIX + name, where.column(name, order).cast(METADATA_TYPES[name]))
        return table


class _Where:
    """Where messages stand."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self.places = np.concatenate(messages.places) if messages.places else np.zeros(0, np.int32)
        self.offsets = np.concatenate(messages.offsets) if messages.offsets else np.zeros(0, np.int64)

    def name(self, row: int) -> str:
        """A message in words."""
        topic, partition = self._messages.names[int(self.places[row])]
        return f"the message of topic {topic}, partition {partition}, offset {self.offsets[row]}"

    def column(self, name: str, order: npt.NDArray[np.int64]) -> pa.Array:
        """A metadata column of the messages in this order."""
        names = self._messages.names
        if name == "topic":
            return pa.array([topic for topic, _ in names], pa.string()).take(pa.array(self.places[order]))
        if name == "partition":
            return pa.array([partition for _, partition in names], pa.int32()).take(pa.array(self.places[order]))
        if name == "offset":
            return pa.array(self.offsets[order])
        if name == "timestamp":
            times = np.concatenate(self._messages.times) if self._messages.times else self.offsets
            return pa.array(times[order], mask=times[order] < 0).cast(METADATA_TYPES[name])
        if name == "key":
            return pa.array(self._messages.keys, pa.binary()).take(pa.array(order))
        # Each header is a pair of the client's; rows without any have none.
        pairs = [None if h is None else [{"key": k, "value": v} for k, v in h] for h in self._messages.headers]
        return pa.array(pairs, METADATA_TYPES[name]).take(pa.array(order))


def _of_values(known: pa.Schema | None) -> pa.Schema | None:
    """The columns of the table that the messages fill."""
    if known is None:
        return None
    return pa.schema(
        [f for f in known if not f.name.startswith(PREFIX) and f.name not in (IS_DELETED, *ALL_META_COLUMNS)]
    )


def _chunks(values: Sequence[bytes | None]) -> list[tuple[int, int]]:
    """Cuts after so many bytes: what a decoder holds beside the messages."""
    ends = np.cumsum(np.fromiter((len(value or b"") for value in values), np.int64, len(values)))
    if not len(ends):
        return []
    count = int(ends[-1] // CHUNK_BYTES) + 1
    cuts = np.searchsorted(ends, np.arange(1, count) * CHUNK_BYTES, side="right").tolist()
    edges = sorted({0, *cuts, len(values)})
    return list(itertools.pairwise(edges))


def _joined(found: list[pa.Table], wanted: pa.Schema | None) -> pa.Table:
    if not found:
        return (wanted if wanted is not None else pa.schema([])).empty_table()
    try:
        return pa.concat_tables(found, promote_options="permissive") if len(found) > 1 else found[0]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidSchemaError(
            f"the messages contradict each other: {error}; correct them at the producer"
        ) from error
