"""A Delta table, as of one of its versions: read by `deltalake`, which applies deletion vectors and
the mapping of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from hudi_table.errors import InvalidOptionError
from hudi_table.model.digits import whole
from hudi_table.read.output.exports import extra
from hudi_table.sources.imports.base import What, chosen, conformed, refuse_options
from hudi_table.table.store.location import shown
from hudi_table.table.store.options import client_settings, flag

_OURS = ("timeout", "connect_timeout", "retries", "fsync")


@dataclass(frozen=True)
class DeltaSnapshot:
    """One version. `table`: a `deltalake.DeltaTable` that stands at it."""

    table: Any
    what: What

    @classmethod
    def of(cls, table: Any) -> DeltaSnapshot:
        """A table that a program has opened, at the version at which it stands."""
        return cls(table, What(shown(str(table.table_uri))))

    @classmethod
    def open(cls, place: str, version: str | None, options: Mapping[str, str]) -> DeltaSnapshot:
        """The table at `place`, at the newest version or the one that is named. `options`: those of
        our stores. Raises InvalidRequestError, InvalidOptionError, InvalidDataError."""
        made = extra("deltalake", "delta").DeltaTable
        number = None if version is None else whole(version)
        if version is not None and number is None:
            raise InvalidOptionError(f"version is {version!r}: those of a Delta table are whole numbers from 0")
        what = What(place, tuple(options.items()))
        asked = _for_delta(options)
        newest = what.read(lambda: made(place, storage_options=asked))
        if number is None or number == newest.version():
            return cls(newest, what)
        if number > newest.version():
            raise InvalidOptionError(f"version is {number}, and the newest of {place} is {newest.version()}")
        return cls(what.read(lambda: made(place, version=number, storage_options=asked)), what)

    @property
    def form(self) -> str:
        """See `Snapshot`."""
        return "delta"

    @property
    def place(self) -> str:
        """See `Snapshot`."""
        return self.what.words

    @cached_property
    def version(self) -> str:
        """Its number, behind the table's id: a table that was made anew begins at 0 again."""
        return f"{self.table.metadata().id}@{self.table.version()}"

    @cached_property
    def schema(self) -> pa.Schema:
        """See `Snapshot`."""
        return pa.schema(self.table.schema().to_arrow())

    @property
    def partition_by(self) -> tuple[str, ...]:
        """See `Snapshot`."""
        return tuple(self.table.metadata().partition_columns)

    @property
    def record_key(self) -> tuple[str, ...]:
        """Delta knows none."""
        return ()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `Snapshot`."""
        found = self.what.read(lambda: self.table.scan(columns=list(columns)))
        yield from conformed(found, chosen(self.schema, columns), self.what)


def _for_delta(options: Mapping[str, str]) -> dict[str, str] | None:
    """Options of a store as `deltalake` names them: as we do. Raises InvalidOptionError for our
    own."""
    refuse_options([name for name in options if name in _OURS], "delta")
    _, left = client_settings(options)
    endpoint = options.get("endpoint") or options.get("endpoint_url") or ""
    if endpoint.lower().startswith("http://") or flag(options, "allow_http", default=False):
        left["allow_http"] = "true"
    return left or None
