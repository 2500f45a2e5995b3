"""What is imported, as of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import HudiError, InvalidDataError, InvalidRequestError
from hudi_table.table.store.options import without_secrets


class Snapshot(Protocol):
    """The rows of another table, all of one version: read twice, they are the same."""

    @property
    def form(self) -> str:
        """`parquet`, `delta` or `iceberg`."""
        ...

    @property
    def place(self) -> str:
        """Where it is, without credentials."""
        ...

    @property
    def version(self) -> str:
        """The same for the same rows, another for others."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        ...

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Columns by whose values it is divided, as they are."""
        ...

    @property
    def record_key(self) -> tuple[str, ...]:
        """Columns that it says identify a row, none where it does not say."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in the types of `schema`. Raises InvalidDataError that names
        what cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class What:
    """What another library reads, in words, and the options that it was given."""

    words: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @contextmanager
    def read(self) -> Iterator[None]:
        """What that library raises meanwhile becomes an error of ours that repeats no secret."""
        try:
            yield
        except HudiError:
            raise
        except Exception as error:
            said = without_secrets(" ".join(str(error).split()) or type(error).__name__, self.options)
            if isinstance(error, FileNotFoundError):
                raise InvalidRequestError(f"{self.words} is not there: {said}") from error
            raise InvalidDataError(f"{self.words} cannot be read: {said}") from error


def chosen(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The schema of some columns, in their order."""
    return pa.schema([schema.field(name) for name in columns])


def conformed(found: Any, schema: pa.Schema, what: What) -> Iterator[pa.RecordBatch]:
    """The batches of another library's reader in the types of `schema`. What it raises becomes an
    InvalidDataError that says `what` was read."""
    batches = iter(found)
    while True:
        with what.read():
            batch = next(batches, None)
        if batch is None:
            return
        yield conform(pa.record_batch(batch), schema)
