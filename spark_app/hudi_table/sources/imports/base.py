"""What is imported, as of one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import HudiError, InvalidDataError, InvalidOptionError, InvalidRequestError, InvariantError
from hudi_table.table.store.errors import unpanicked
from hudi_table.table.store.options import without_secrets

T = TypeVar("T")


class Snapshot(Protocol):
    """The rows of another table, all of one version: read twice, they are the same."""

    @property
    def form(self) -> str:
        """`parquet`, `delta`, `iceberg` or `hudi`."""
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

    def read(self, work: Callable[[], T]) -> T:
        """What `work` returns. What that library raises, a panic too, becomes an error of ours that
        repeats no secret."""
        try:
            return unpanicked(work, lambda: InvariantError(f"the library that reads {self.words} panicked: report it"))
        except HudiError:
            raise
        except Exception as error:
            said = without_secrets(" ".join(str(error).split()) or type(error).__name__, self.options)
            if isinstance(error, FileNotFoundError):
                raise InvalidRequestError(f"{self.words} is not there: {said}") from error
            raise InvalidDataError(f"{self.words} cannot be read: {said}") from error


def refuse_options(lost: Sequence[str], form: str) -> None:
    """Raise InvalidOptionError for options that another library would not hear of."""
    if lost:
        raise InvalidOptionError(
            f"source_options has {lost[0]!r}, which does nothing for a table of the form {form}: leave it out"
        )


def chosen(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The schema of some columns, in their order."""
    return pa.schema([schema.field(name) for name in columns])


def conformed(found: Any, schema: pa.Schema, what: What) -> Iterator[pa.RecordBatch]:
    """The batches of another library's reader in the types of `schema`. What it raises becomes an
    InvalidDataError that says `what` was read."""
    batches = iter(found)
    while (batch := what.read(lambda: next(batches, None))) is not None:
        yield conform(pa.record_batch(batch), schema)
