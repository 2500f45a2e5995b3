"""Messages as rows: values decoded, tombstones as asked for, metadata columns beside them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, UnsettledDataError
from hudi_table.model.names import IS_DELETED
from hudi_table.sources.formats.decoder import Decoder, Independent, Settled, UndecodableError
from hudi_table.sources.formats.values import Early, Fault, Values, check_reserved, of_values
from hudi_table.sources.kafka.consume import Messages
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.stored import StoredTable
from hudi_table.sources.kafka.where import METADATA_TYPES, PREFIX, Where


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows, the place of each row's message, and the messages that cannot be read. `read`: how many
    messages were, where rows are not one each; `since`: see `Settled`."""

    table: pa.Table
    order: npt.NDArray[np.int64]
    faults: tuple[Fault, ...]
    read: int
    since: pa.Scalar | None = None


@dataclass(frozen=True, slots=True)
class Decoding:
    """How messages become rows. `record_key` and `needed`: the columns of the record key, and those
    that a delete needs, the partition's among them. `keys` decodes the keys of tombstones; None: a
    key is the text of the record key's one column. `error_ratio`: a message that cannot be read is
    reported instead of raised, up to this part of those of one commit; None: it is raised.
    `settle`: what is left to do with the rows of all values of a commit, given the keys before that
    headers tell, and the number of partitions; `stored`: the table that it looks at. `most`: how
    many messages a commit may have of which these are a part; None: these are all."""

    settings: KafkaSettings
    values: Decoder
    keys: Decoder | None
    needed: tuple[str, ...]
    error_ratio: float | None = None
    settle: Callable[[pa.Table, pa.Array, int], Settled] | None = None
    most: int | None = None
    stored: StoredTable | None = None

    def early(self, known: pa.Schema | None, pool: Executor) -> Early | None:
        """What decodes messages while more are read, where that can be; into the columns that are
        known then."""
        wanted = of_values(known, PREFIX)
        if wanted is None or not isinstance(self.values, Independent):
            return None
        return Early(self.values, wanted, pool.submit)

    def rows(self, messages: Messages, known: pa.Schema | None, where: Where) -> Decoded:
        """One row for each message that is one. Raises InvalidDataError that names topic, partition
        and offset."""
        faults: list[Fault] = []
        gone = np.fromiter((value is None for value in messages.values), bool, len(messages.values))
        if gone.any() and self.settings.tombstones == "Refuse":
            raise InvalidDataError(
                f"{where.name(int(np.flatnonzero(gone)[0]))} is a tombstone (a null value), and kafka.tombstones is Refuse: give Delete or Ignore"
            )
        kept = np.flatnonzero(~gone)
        wanted = of_values(known, PREFIX)
        table, order = self._decoded(messages, kept, wanted, where, faults)
        read = len(table) + len(faults)
        table, order, since = self._settled(table, order, where, faults)
        read -= len(faults)
        if self.settings.tombstones == "Delete":
            flagged = self._with_keys(messages, np.flatnonzero(gone), faults)
            table, order = self._with_deletes(table, order, flagged, wanted, where, faults)
            read = len(table)
        return Decoded(self._with_metadata(table, order, where), order, tuple(faults), read, since)

    def _decoded(
        self,
        messages: Messages,
        kept: npt.NDArray[np.int64],
        wanted: pa.Schema | None,
        where: Where,
        faults: list[Fault],
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The rows of the values, and the place of each."""
        table, order = self._values(where).rows(messages.values, kept, wanted, faults, messages.early)
        topics = ", ".join(sorted({topic for topic, _ in messages.names}))
        check_reserved(table, PREFIX, topics, marks=self.settings.debezium)
        return table, order

    def _values(self, where: Where) -> Values:
        return Values(self.values, self.settings.format, where.name, self.error_ratio, self.most)

    def _settled(
        self, table: pa.Table, order: npt.NDArray[np.int64], where: Where, faults: list[Fault]
    ) -> tuple[pa.Table, npt.NDArray[np.int64], pa.Scalar | None]:
        if self.settle is None or not len(table):
            return table, order, None
        settled = self.settle(table, where.old_keys(order), where.partitions)
        table, order, bad = settled.rows, order[settled.of], settled.bad
        if not bad:
            return table, order, settled.since
        said = f"cannot be read as {self.settings.format}"
        row, why = bad[0]
        # What a part lacks another part may bring.
        is_part = self.most is not None and where.partitions > 1
        if self.error_ratio is None or (is_part and settled.waits):
            words = f"{where.name(int(order[row]))} {said}: {why}"
            if not settled.waits:
                raise InvalidDataError(words)
            raise UnsettledDataError(words, order[[place for place, _ in bad]].tolist())
        if len(faults) + len(bad) > self._values(where).most(len(where.messages.values)):
            raise self._values(where).too_many(int(order[row]), why)
        faults += [Fault(int(order[row]), f"the value {said}: {why}") for row, why in bad]
        good = np.setdiff1d(np.arange(len(table)), [row for row, _ in bad])
        return table.take(pa.array(good)), order[good], settled.since

    def _with_keys(self, messages: Messages, gone: npt.NDArray[np.int64], faults: list[Fault]) -> npt.NDArray[np.int64]:
        """The tombstones that have a key, where those without are reported."""
        if self.error_ratio is None:
            return gone
        without = [place for place in gone.tolist() if messages.keys[place] is None]
        faults += [Fault(place, "a tombstone without a key: nothing says which row it deletes") for place in without]
        return np.setdiff1d(gone, np.array(without, np.int64))

    def _with_deletes(
        self,
        table: pa.Table,
        kept: npt.NDArray[np.int64],
        gone: npt.NDArray[np.int64],
        wanted: pa.Schema | None,
        where: Where,
        faults: list[Fault],
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The rows with the column that flags deletes, those of the tombstones at their places."""
        rows = table.append_column(IS_DELETED, pa.array(np.zeros(len(table), bool)))
        if not len(gone):
            return rows, kept
        keys, gone = self._good_keys(
            where.messages, gone, wanted if wanted is not None else table.schema, where, faults
        )
        schema = pa.schema([*rows.schema, *(f for f in keys.schema if f.name not in rows.schema.names)])
        flagged = keys.append_column(IS_DELETED, pa.array(np.ones(len(keys), bool)))
        joined = pa.concat_tables([conform(rows, schema), conform(flagged, schema)])
        order = np.concatenate([kept, gone])
        by_place = np.argsort(order, kind="stable")
        return joined.take(pa.array(by_place)), order[by_place]

    def _good_keys(
        self,
        messages: Messages,
        gone: npt.NDArray[np.int64],
        known: pa.Schema,
        where: Where,
        faults: list[Fault],
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The key columns of tombstones, and the places of those that have them."""
        try:
            return self._keys(messages, gone, known, where), gone
        except InvalidDataError as error:
            if self.error_ratio is None:
                raise
            if len(gone) == 1:
                faults.append(Fault(int(gone[0]), error.message))
                return self._keys(messages, gone[:0], known, where), gone[:0]
        parts = [self._good_keys(messages, half, known, where, faults) for half in np.array_split(gone, 2)]
        return pa.concat_tables([keys for keys, _ in parts], promote_options="permissive"), np.concatenate(
            [places for _, places in parts]
        )

    def _keys(self, messages: Messages, gone: npt.NDArray[np.int64], known: pa.Schema, where: Where) -> pa.Table:
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

    def _with_metadata(self, table: pa.Table, order: npt.NDArray[np.int64], where: Where) -> pa.Table:
        for name in self.settings.metadata:
            table = table.append_column(PREFIX + name, where.column(name, order).cast(METADATA_TYPES[name]))
        return table
