"""`bootstrap_table`: a folder of Parquet becomes a table in place, without a row being copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from hudi_table.arguments import MergeModeName, TableTypeName
from hudi_table.model.given import checked_call
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.table.config import IndexSpec, PartitionFields
from hudi_table.services.bootstrapping.run import BootstrapRequest, BootstrapResult, bootstrap_folder
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.engine.progress import reporting
from hudi_table.table.store.opening import open_storage
from hudi_table.write.checks.create_table import TableSpec

__all__ = ["BootstrapResult", "bootstrap_table"]


@checked_call
def bootstrap_table(
    uri: str | Path,
    source: str | Path,
    *,
    record_key: str | Sequence[str],
    mode: Literal["MetadataOnly", "FullRecord"] = "MetadataOnly",
    pattern: str | None = None,
    partition_by: PartitionFields | None = None,
    ordering_fields: str | Sequence[str] | None = None,
    type: TableTypeName | None = None,  # noqa: A002 - the name of the resource's field
    merge_mode: MergeModeName | None = None,
    index: str | Mapping[str, Any] | IndexSpec | None = None,
    name: str | None = None,
    version: int | None = None,
    max_memory: int = DEFAULT_MEMORY,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: ProgressFunction | None = None,
) -> BootstrapResult:
    """Make a table at `uri` of the Parquet files below `source`, which stay as they are: all or
    nothing.

    `mode`: ``"MetadataOnly"`` writes a skeleton with the meta columns beside each file, so the
    table needs its source for as long as a skeleton is in use; ``"FullRecord"`` copies the rows, as
    `import_table`. `pattern`: a regular expression; partitions whose whole path it matches are of
    `mode`, all others of the other one.

    `record_key` must be unique within a partition, or over the table with a global index.
    `partition_by` is what the folders are named by unless it is given; folders without ``=`` need
    it. `storage_options` are of both places. What else describes the table is as for
    `create_table`; its index is one that looks keys up. The same bootstrap again changes nothing
    (`replayed`), and one that was killed is run again. Raises InvalidRequestError if `uri` holds
    something else, InvalidDataError, InvalidOptionError, InvalidSchemaError.
    """
    folder = ParquetFolder.open(open_storage(str(source), storage_options))
    spec = TableSpec(
        schema=folder.schema,
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
    working = reporting(LocalEngine(), "bootstrap", progress)
    request = BootstrapRequest(spec, mode, pattern, max_memory)
    return bootstrap_folder(open_storage(str(uri), storage_options), folder, request, working)
