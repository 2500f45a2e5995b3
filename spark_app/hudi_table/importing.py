"""`import_table`: a new table with the rows of a folder of Parquet, of a Delta table, of an Iceberg
table or of another Hudi table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from hudi_table.arguments import MergeModeName, TableTypeName
from hudi_table.model.given import checked_call
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.table.config import IndexSpec, PartitionFields, TableConfig
from hudi_table.services.importing import ImportRequest, ImportResult, import_snapshot
from hudi_table.sources.imports.hudi import HudiSnapshot, like, payload_of
from hudi_table.sources.imports.opening import open_snapshot
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.commit.beside.locking import locked, with_lock
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.engine.progress import reporting
from hudi_table.table.store.opening import open_storage, refuse_nested
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.checks.create_table import TableSpec

__all__ = ["ImportResult", "import_table"]


@checked_call
def import_table(
    uri: str | Path,
    source: Any,
    *,
    format: Literal["parquet", "delta", "iceberg", "hudi"] | None = None,  # noqa: A002 - as of an export
    source_version: str | int | None = None,
    catalog: str | None = None,
    source_options: Mapping[str, str] | None = None,
    record_key: str | Sequence[str] | None = None,
    partition_by: PartitionFields | None = None,
    ordering_fields: str | Sequence[str] | None = None,
    type: TableTypeName | None = None,  # noqa: A002 - the name of the resource's field
    merge_mode: MergeModeName | None = None,
    index: str | Mapping[str, Any] | IndexSpec | None = None,
    name: str | None = None,
    version: int | None = None,
    duplicates: Literal["refuse", "newest"] = "refuse",
    max_memory: int = DEFAULT_MEMORY,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    lock: Mapping[str, str] | None = None,
    engine: Engine | None = None,
    progress: ProgressFunction | None = None,
) -> ImportResult:
    """Make a table at `uri` that holds the rows of `source`, in one commit: all or none.

    `source`: path or URI of a folder of Parquet files, of a Delta table, of an Iceberg table or its
    metadata file; a `deltalake.DeltaTable`; a `pyiceberg` table; with `catalog`, a catalog of
    pyiceberg's configuration, the name of a table there. `format` is found by what lies there
    unless given. `source_version`: a version of a Delta table, a snapshot of an Iceberg table; the
    newest unless given. `source_options`: of the source's store, as `storage_options`.

    `record_key` must be unique within a partition, or over the table with a global index. A key
    that comes twice is refused before anything is written; with `duplicates="newest"` the row with
    the largest ordering value stays instead. Left out, it is the identifier fields of an Iceberg
    table; `partition_by` is what the source is divided by, `[]` for nothing.

    What else describes the table is as for `create_table`; where it is left out, a copy of a Hudi
    table is as that one. `max_memory`, `options`, `engine` and
    `progress` as for `write_hudi`. The same import again changes nothing (`replayed`), and one that
    was killed is run again. Raises InvalidRequestError if `uri` holds another table or other
    rows, InvalidDataError that names what cannot be read or comes twice, InvalidOptionError,
    InvalidSchemaError.
    """
    storage = open_storage(str(uri), storage_options)
    at = None if source_version is None else str(source_version)
    snapshot = open_snapshot(source, format, at, catalog, dict(source_options or {}))
    if isinstance(snapshot, HudiSnapshot | ParquetFolder):
        refuse_nested(storage, snapshot.storage)
    spec = TableSpec(
        schema=snapshot.schema,
        record_key=record_key,
        partition_by=partition_by,
        ordering_fields=ordering_fields,
        type=type,
        merge_mode=merge_mode,
        index=index,
        name=name,
        version=version,
        options=dict(options or {}),
    )

    def with_lock_of(ctx: TableContext) -> TableContext:
        return locked(ctx if lock is None else with_lock(ctx, lock), spec.options)

    if isinstance(snapshot, HudiSnapshot):
        spec = _as_there(snapshot.context.config, spec)
    request = ImportRequest(spec, duplicates, max_memory, with_lock_of)
    working = reporting(engine or LocalEngine(), "import", progress)
    return import_snapshot(storage, snapshot, request, working)


def _as_there(config: TableConfig, spec: TableSpec) -> TableSpec:
    """The spec with what another Hudi table says where the spec leaves it out."""
    told = {name: value for name, value in like(config).items() if getattr(spec, name) is None}
    return replace(spec, **told, options={**payload_of(config), **spec.options})
