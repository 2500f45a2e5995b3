"""What tasks of Spark do for an ingest from Kafka: read a range of offsets, then make rows of what
was read; and how both come back."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_spark.jobs.shaping import Shaping
from hudi_spark.jobs.sifting.parts import Batches, answer, packet, packets
from hudi_spark.worker import set_up_worker
from hudi_table.codec.conform import conform
from hudi_table.errors import HudiError, InvalidDataError, UnavailableError
from hudi_table.model.job.positions import Positions
from hudi_table.sources.base import Rows
from hudi_table.sources.kafka.ranges import Range, packed, read_range, unpacked
from hudi_table.sources.kafka.refusing import ERROR_SCHEMA
from hudi_table.sources.kafka.rows import Decoding
from hudi_table.sources.kafka.source import rows_of
from hudi_table.table.store.clock import SystemClock

_CHUNK_ROWS = 65_536


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
    batch has at most."""

    tools: bytes = field(repr=False)
    known: pa.Schema | None
    start: Positions
    most: int

    def rows(self, wanted: Range, batches: Sequence[pa.RecordBatch]) -> Rows[Positions]:
        """Rows of the messages of a range."""
        tools = _tools_of(self.tools)
        messages = unpacked(batches, wanted.place)
        decoding = replace(tools.decoding, most=self.most)
        return rows_of(messages, decoding, self.known, (tools.ingest, tools.attempt), self.start)


@dataclass(frozen=True, slots=True)
class ReadRange:
    """What a task says of a range: the offset behind it, how many messages are in it, the offset of
    the last one, their bytes and newest time; the columns of their rows, or the error that there
    are none."""

    wanted: Range
    reached: int
    count: int
    last: int
    bytes: int
    newest: int
    schema: pa.Schema | None = None
    error: tuple[str, str] | None = None


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
    tools = _tools_of(asked.tools)
    for batch in batches:
        for ordinal, payload in zip(
            batch.column("ordinal").to_pylist(), batch.column("payload").to_pylist(), strict=True
        ):
            wanted: Range = pickle.loads(payload)  # noqa: S301 - the driver's own, see tests/tidy/test_dangers.py
            messages, reached = read_range(tools.decoding.settings, tools.environment, wanted, SystemClock())
            parts = packed(messages)
            yield from (packet(ordinal, part) for part in parts)
            times = [int(np.max(each)) for each in messages.times if len(each)]
            told = ReadRange(
                wanted,
                reached,
                len(messages.values),
                int(messages.offsets[-1][-1]) if parts else -1,
                messages.size,
                max(times, default=-1),
            )
            yield answer(ordinal, pickle.dumps(_looked_at(told, parts, asked)), None)


def _looked_at(told: ReadRange, parts: Sequence[pa.RecordBatch], asked: Asked) -> ReadRange:
    """With the columns of the rows. An error counts only if nothing before the range ends the
    batch."""
    try:
        return replace(told, schema=asked.rows(told.wanted, parts).schema)
    except HudiError as error:
        return replace(told, error=(type(error).__name__, error.message))


def make_part(batches: Batches, *, asked: Asked, found: Mapping[int, ReadRange]) -> Batches:
    """What the second task of a range does."""
    set_up_worker()
    work = _tools_of(asked.tools).work
    for ordinal, group in itertools.groupby(packets(batches), lambda found: found[0]):
        if ordinal not in found:
            continue
        told = found[ordinal]
        parts = [part for _, some in group for part in some]
        if (sum(map(len, parts)), parts[-1].column("offset")[-1].as_py()) != (told.count, told.last):
            wanted = told.wanted
            raise UnavailableError(
                f"partition {wanted.partition} of topic {wanted.topic} was read again, and what lies from offset {wanted.start} on is no longer what it was: "
                "another attempt reads it as it is now"
            )
        with closing(Shaping(work)) as shaping:
            rows = _fitting(asked.rows(told.wanted, parts), asked)
            judged = shaping.judged(rows)
            count = 0
            for batch in judged.rows.batches:
                for start in range(0, len(batch), _CHUNK_ROWS):
                    part = batch.slice(start, _CHUNK_ROWS)
                    count += len(part)
                    yield packet(ordinal, part)
        yield answer(ordinal, pickle.dumps(MadeRows(rows.count, judged.messages, judged.refused, judged.dropped)), None)


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
