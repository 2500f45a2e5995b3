"""What tasks of Spark do for an ingest from Kafka: read a range of offsets and make rows of its
messages; and how both come back.

The types of a batch are those of all its ranges. Where the table's are enough for a range, its
task makes the rows at once and keeps them. Else it keeps the messages, and rows are made of them
once the columns of all ranges are known.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_spark.jobs.shaping import Shaping
from hudi_spark.jobs.sifting.parts import Batches, answer, entries, packet
from hudi_spark.worker import set_up_worker
from hudi_table.codec.conform import conform
from hudi_table.errors import HudiError, InvalidDataError, UnavailableError
from hudi_table.model.job.positions import Positions
from hudi_table.model.names import IS_DELETED
from hudi_table.sources.base import Rows
from hudi_table.sources.formats.decoder import Resolving
from hudi_table.sources.formats.dialects import DIALECTS
from hudi_table.sources.kafka.consume import Messages
from hudi_table.sources.kafka.ranges import Range, packed, read_range, unpacked
from hudi_table.sources.kafka.refusing import ERROR_SCHEMA
from hudi_table.sources.kafka.rows import Decoding
from hudi_table.sources.kafka.source import rows_of
from hudi_table.sources.kafka.where import PREFIX
from hudi_table.table.store.clock import SystemClock

_CHUNK_ROWS = 65_536
_OWN = frozenset({IS_DELETED, *(name for dialect in DIALECTS.values() for name in dialect.own.names)})


@dataclass(frozen=True, slots=True)
class Tools:
    """What tasks make rows with; its secrets travel as those of the store do."""

    decoding: Decoding
    work: Mapping[str, Any]
    environment: Mapping[str, str] = field(repr=False)
    ingest: str = ""
    attempt: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a task is asked of one batch. `known`: types that are wanted; `most`: messages that the
    batch has at most; `schemas`: those of the other ranges, in a format that asks for them."""

    tools: bytes = field(repr=False)
    known: pa.Schema | None
    start: Positions
    most: int
    schemas: frozenset[int] = frozenset()

    def rows(self, messages: Messages) -> Rows[Positions]:
        """Rows of the messages of a range."""
        tools = _tools_of(self.tools)
        decoding = replace(tools.decoding, most=self.most)
        if isinstance(decoding.values, Resolving):
            decoding.values.beside = self.schemas
        return rows_of(messages, decoding, self.known, (tools.ingest, tools.attempt), self.start)

    def holds(self, schema: pa.Schema) -> bool:
        """Whether a batch can have no other types for these columns, whatever else is in it."""
        known = self.known
        return known is not None and all(
            known.field(each.name).type == each.type if each.name in known.names else is_own(each.name)
            for each in schema
        )


def is_own(name: str) -> bool:
    """Whether an ingest adds the column to those of the values, always of one type."""
    return name.startswith(PREFIX) or name in _OWN


@dataclass(frozen=True, slots=True)
class ReadRange:
    """What a task says of a range: the offset behind it, how many messages are in it, the offset of
    the last one, their bytes and newest time; the columns of their rows, or the error that there
    are none; of the rows, if it has made and kept them; and their schemas, see `Asked`.
    `since`: see `Rows`."""

    wanted: Range
    reached: int
    count: int
    last: int
    bytes: int
    newest: int
    schema: pa.Schema | None = None
    error: tuple[str, str] | None = None
    made: MadeRows | None = None
    schemas: frozenset[int] = frozenset()
    since: pa.Scalar | None = None

    def fits(self, columns: pa.Schema, *, asked: bool) -> bool:
        """Whether the rows that are kept are those of these columns, where all that they lack is
        null. `asked`: expectations may name any column."""
        if self.made is None or self.schema is None:
            return not self.count
        return (not asked or self.schema.names == columns.names) and all(
            columns.field(each.name).type == each.type for each in self.schema
        )

    def confirm(self, count: int, last: int) -> None:
        """Raise UnavailableError if it was read again, and something else was there."""
        if (count, last) != (self.count, self.last):
            wanted = self.wanted
            raise UnavailableError(
                f"partition {wanted.partition} of topic {wanted.topic} was read again, and what lies from offset {wanted.start} on is no longer what it was: "
                "another attempt reads it as it is now"
            )


@dataclass(frozen=True, slots=True)
class MadeRows:
    """What a task says of the rows of a range."""

    count: int
    messages: int
    refused: pa.Table
    dropped: int


@functools.lru_cache(maxsize=1)
def _tools_of(tools: bytes) -> Tools:
    """Kept by a worker from task to task: a registry is asked once for a schema."""
    found: Tools = pickle.loads(tools)  # noqa: S301 - the driver's own, see tests/tidy/test_dangers.py
    return found


def read_part(batches: Batches, *, asked: Asked) -> Batches:
    """What the first task of a range does."""
    set_up_worker()
    for batch in batches:
        for ordinal, payload in zip(
            batch.column("ordinal").to_pylist(), batch.column("payload").to_pylist(), strict=True
        ):
            wanted: Range = pickle.loads(payload)  # noqa: S301 - the driver's own, see tests/tidy/test_dangers.py
            told, messages = _read(wanted, asked)
            try:
                rows = asked.rows(messages)
                told = replace(told, schema=rows.schema, schemas=_schemas(asked), since=rows.since)
                if asked.holds(rows.schema):
                    made = yield from _kept(ordinal, rows, asked)
                    told = replace(told, made=made)
            except HudiError as error:
                # It counts only if nothing before the range ends the batch.
                told = replace(told, error=(type(error).__name__, error.message))
            if told.made is None and told.error is None:
                yield from (packet(ordinal, part) for part in packed(messages))
            yield answer(ordinal, pickle.dumps(told), None)


def _schemas(asked: Asked) -> frozenset[int]:
    """Of the messages of which rows were made last."""
    decoder = _tools_of(asked.tools).decoding.values
    return decoder.together if isinstance(decoder, Resolving) else frozenset()


def _read(wanted: Range, asked: Asked) -> tuple[ReadRange, Messages]:
    tools = _tools_of(asked.tools)
    messages, reached = read_range(tools.decoding.settings, tools.environment, wanted, SystemClock())
    times = [int(np.max(each)) for each in messages.times if len(each)]
    told = ReadRange(
        wanted,
        reached,
        len(messages.values),
        int(messages.offsets[-1][-1]) if messages.values else -1,
        messages.size,
        max(times, default=-1),
    )
    return told, messages


def _kept(ordinal: int, rows: Rows[Positions], asked: Asked) -> Generator[pa.RecordBatch, None, MadeRows]:
    """The rows that meet the expectations, as tasks keep them."""
    with closing(Shaping(_tools_of(asked.tools).work)) as shaping:
        judged = shaping.judged(rows)
        count = 0
        for batch in judged.rows.batches:
            for start in range(0, len(batch), _CHUNK_ROWS):
                part = batch.slice(start, _CHUNK_ROWS)
                count += len(part)
                yield packet(ordinal, part)
        return MadeRows(rows.count, judged.messages, judged.refused, judged.dropped)


def make_part(batches: Batches, *, asked: Asked, found: Mapping[int, ReadRange]) -> Batches:
    """What the second task of a range does, of the columns of all."""
    set_up_worker()
    assert asked.known is not None
    expects = bool(_tools_of(asked.tools).work.get("expectations"))
    for ordinal, group in itertools.groupby(entries(batches), lambda entry: entry[0]):
        told = found.get(ordinal)
        if told is None or not told.count:
            continue
        parts: list[pa.RecordBatch] = []
        for _, again, data in group:
            parts += data
            if again is not None:
                told.confirm(again.count, again.last)
        if told.made is not None and told.fits(asked.known, asked=expects):
            yield from (packet(ordinal, part) for part in parts)
            made = told.made
        else:
            rows = _fitting(asked.rows(_messages(told, parts, asked)), asked)
            made = yield from _kept(ordinal, rows, asked)
        yield answer(ordinal, pickle.dumps(made), None)


def _messages(told: ReadRange, parts: Sequence[pa.RecordBatch], asked: Asked) -> Messages:
    """Those of a range: as they are kept, or read once more where rows were made of them whose
    columns do not do."""
    if told.made is None:
        return unpacked(parts, told.wanted.place)
    again, messages = _read(told.wanted, asked)
    told.confirm(again.count, again.last)
    return messages


def kept_rows(batches: Batches, *, found: Mapping[int, ReadRange], schema: pa.Schema) -> Batches:
    """The rows of these ranges as tasks have kept them. Raises UnavailableError where a task was
    done again, and read something else."""
    set_up_worker()
    for ordinal, again, data in entries(batches):
        if ordinal in found:
            yield from (conform(each, schema) for each in data)
            if isinstance(again, ReadRange):
                found[ordinal].confirm(again.count, again.last)


def _fitting(rows: Rows[Positions], asked: Asked) -> Rows[Positions]:
    """In the columns of all ranges. What does not fit is as a message that cannot be decoded."""
    assert asked.known is not None
    try:
        table = conform(rows.batches.read_all(), asked.known)
        return replace(rows, schema=asked.known, batches=table.to_reader(), count=len(table))
    except InvalidDataError as error:
        decoding = _tools_of(asked.tools).decoding
        assert rows.origin is not None
        why = f"cannot be read as {decoding.settings.format}: its schema does not fit the others: {error.message}"
        if decoding.error_ratio is None:
            raise InvalidDataError(f"{rows.origin.place(0)} {why}") from error
        refused = rows.origin.refused(range(rows.count), [f"the value {why}"] * rows.count, [""] * rows.count)
        none = pa.nulls(len(refused), ERROR_SCHEMA.field("rule").type)
        refused = refused.set_column(refused.schema.get_field_index("rule"), ERROR_SCHEMA.field("rule"), none)
        assert rows.refused is not None
        kept = asked.known.empty_table().to_reader()
        return replace(
            rows, schema=asked.known, batches=kept, count=0, read=0, refused=pa.concat_tables([rows.refused, refused])
        )
