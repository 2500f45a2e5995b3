"""An Iceberg table, as of one of its snapshots: read by `pyiceberg`, which applies deletes and the
history of columns.

A catalog says which metadata file is the table's; without one that file is named, or found by
`version-hint.text`, which tables of a file system have. The newest file by its name may be that of
a commit that failed, so it is never taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from hudi_table.errors import InvalidOptionError, InvalidRequestError, ObjectNotFoundError
from hudi_table.model.digits import is_digits
from hudi_table.read.output.exports import extra
from hudi_table.sources.imports.base import What, chosen, conformed, refuse_options
from hudi_table.table.store.ports import Storage

_HINT = "metadata/version-hint.text"
_LONG_DIGITS = 19
METADATA = ".metadata.json"
_NAMES = {
    "region": "s3.region",
    "endpoint": "s3.endpoint",
    "endpoint_url": "s3.endpoint",
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
}


@dataclass(frozen=True)
class IcebergSnapshot:
    """One snapshot. `table`: a `pyiceberg.table.Table`, which stands still unless it is refreshed;
    `snapshot_id`: None for the current one, whose columns are those of the table."""

    table: Any
    what: What
    snapshot_id: int | None

    @classmethod
    def of(cls, table: Any, version: str | None, what: What | None = None) -> IcebergSnapshot:
        """The current snapshot, or the one whose id is named. Raises InvalidOptionError."""
        what = what or What(".".join(table.name()))
        if version is None:
            return cls(table, what, None)
        # A snapshot's id is any Java long, which `whole` does not take.
        number = int(version) if is_digits(version) and len(version) <= _LONG_DIGITS else None
        if number is None or table.snapshot_by_id(number) is None:
            there = ", ".join(str(each.snapshot_id) for each in table.snapshots()[-5:]) or "none"
            raise InvalidOptionError(
                f"version is {version!r}, which is no snapshot of {what.words}: the newest are {there}"
            )
        return cls(table, what, number)

    @property
    def form(self) -> str:
        """See `Snapshot`."""
        return "iceberg"

    @property
    def place(self) -> str:
        """See `Snapshot`."""
        return self.what.words

    @cached_property
    def version(self) -> str:
        """The snapshot's id behind the table's, and which schema it is read by."""
        current = self.table.current_snapshot()
        number = self.snapshot_id or (current.snapshot_id if current is not None else "empty")
        return f"{self.table.metadata.table_uuid}@{number}, schema {self._columns().schema_id}"

    @cached_property
    def schema(self) -> pa.Schema:
        """See `Snapshot`."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return schema_to_pyarrow(self._columns(), include_field_ids=False)

    @cached_property
    def partition_by(self) -> tuple[str, ...]:
        """The columns by whose values themselves it is divided: months, buckets and their like
        have no equal."""
        names = {field.field_id: field.name for field in self._columns().fields}
        fields = [field for field in self.table.spec().fields if str(field.transform) == "identity"]
        return tuple(names[field.source_id] for field in fields if field.source_id in names)

    @property
    def record_key(self) -> tuple[str, ...]:
        """Its identifier fields."""
        return tuple(sorted(self._columns().identifier_field_names()))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `Snapshot`."""
        found = self.what.read(lambda: self._scan(tuple(columns)).to_arrow_batch_reader())
        yield from conformed(found, chosen(self.schema, columns), self.what)

    def _columns(self) -> Any:
        return self._scan().projection()

    def _scan(self, columns: tuple[str, ...] = ("*",)) -> Any:
        return self.table.scan(snapshot_id=self.snapshot_id, selected_fields=columns)


def from_catalog(name: str, identifier: str, version: str | None) -> IcebergSnapshot:
    """A table of a catalog that the configuration of `pyiceberg` describes. Raises
    InvalidRequestError, InvalidOptionError, InvalidDataError."""
    catalogs = extra("pyiceberg.catalog", "iceberg")
    what = What(f"{identifier} of the catalog {name}")
    table = what.read(lambda: catalogs.load_catalog(name).load_table(identifier))
    return IcebergSnapshot.of(table, version, what)


def from_folder(storage: Storage, version: str | None, options: Mapping[str, str]) -> IcebergSnapshot:
    """The table whose folder `storage` is. Raises as `from_metadata`."""
    return from_metadata(f"{storage.base_path}/metadata/{_hinted(storage)}", version, options)


def from_metadata(place: str, version: str | None, options: Mapping[str, str]) -> IcebergSnapshot:
    """The table that a metadata file describes. `options`: those of our stores. Raises
    InvalidRequestError, InvalidOptionError, InvalidDataError."""
    tables = extra("pyiceberg.table", "iceberg")
    what, asked = What(place, tuple(options.items())), _for_iceberg(options)
    table = what.read(lambda: tables.StaticTable.from_metadata(place, asked))
    return IcebergSnapshot.of(table, version, what)


def _hinted(storage: Storage) -> str:
    try:
        hint = storage.get(_HINT).decode().strip()
    except ObjectNotFoundError as error:
        found = [info.path for info in storage.list_dir("metadata")[1] if info.path.endswith(METADATA)]
        such = f", such as {storage.base_path}/{max(found)}" if found else ""
        raise InvalidRequestError(
            f"the Iceberg table at {storage.base_path} has no version-hint.text: name its catalog, or the metadata file that "
            f"the catalog names{such}"
        ) from error
    return hint if hint.endswith(METADATA) else f"v{hint}{METADATA}"


def _for_iceberg(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a store as `pyiceberg` names them. Raises InvalidOptionError for others."""
    refuse_options([name for name in options if name.removeprefix("aws_") not in _NAMES], "iceberg")
    return {_NAMES[name.removeprefix("aws_")]: value for name, value in options.items()}
