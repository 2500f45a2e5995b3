"""What every source is: a protocol of four steps, the same for files and for a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

Found = TypeVar("Found")
Held = TypeVar("Held")


class Origin(Protocol):
    """Where each row of a batch came from."""

    def place(self, row: int) -> str:
        """A row in words."""
        ...

    def refused(self, rows: Sequence[int], reasons: Sequence[str], rules: Sequence[str]) -> pa.Table:
        """Rows of an error table: of each why it is one, and by which rule."""
        ...


@dataclass(frozen=True, slots=True)
class Rows(Generic[Held]):
    """What was read of a batch. `batches` is read once and to its end, in order; `checkpoint` says
    what is in the table once they are. `count`: the rows, -1 where they are known only at the end.
    `refused`: what could not be read, as rows of an error table, None where nothing is refused but
    by an error; `origin` tells the same of rows that were read. `read`: how many messages could be
    read, -1 where each is a row. `since`: rows of the table whose ordering value is less are
    deleted before these are written."""

    schema: pa.Schema
    batches: pa.RecordBatchReader
    checkpoint: Held
    count: int = -1
    refused: pa.Table | None = None
    origin: Origin | None = None
    read: int = -1
    since: pa.Scalar | None = None

    @property
    def taken(self) -> int:
        """How many of what the source holds were read."""
        return self.count if self.read < 0 else self.read


class Batch(Protocol[Held]):
    """What is to be read as one commit."""

    @property
    def name(self) -> str:
        """The same for whatever begins at the same checkpoint, on any attempt: of two commits of
        one name one stands."""
        ...

    def read(self, known: pa.Schema | None) -> Rows[Held]:
        """The rows, in the types of `known` columns where the source has none of its own.

        Raises InvalidDataError that names what cannot be read, InvalidSchemaError,
        UnavailableError, AccessDeniedError.
        """
        ...


class Source(Protocol[Found, Held]):
    """A place that rows come from."""

    def discover(self) -> Found:
        """What is there now. Raises UnavailableError, AccessDeniedError, InvalidRequestError."""
        ...

    def plan(self, found: Found, before: Held | None) -> Batch[Held] | None:
        """What of it is to be read next, None if nothing is. `before`: the checkpoint of the newest
        commit."""
        ...
