"""`open_snapshot`: what is to be imported, by what names it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.metadata.port import open_context
from hudi_table.model.names import HOODIE
from hudi_table.read.moments import instant_of
from hudi_table.read.plan import Request
from hudi_table.read.scan import Scan
from hudi_table.sources.imports.base import Snapshot
from hudi_table.sources.imports.delta import DeltaSnapshot
from hudi_table.sources.imports.hudi import HudiSnapshot
from hudi_table.sources.imports.iceberg import METADATA, IcebergSnapshot, from_catalog, from_folder, from_metadata
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.context import TableContext

FORMS = ("parquet", "delta", "iceberg", "hudi")


def open_snapshot(
    source: Any, form: str | None, version: str | None, catalog: str | None, options: Mapping[str, str]
) -> Snapshot:
    """The rows of `source` as of now, or as of a version.

    `source`: a path or URI, a `deltalake.DeltaTable`, a `pyiceberg` table, a scan of a Hudi table,
    or with `catalog` the name of a table there. `form`: one of `FORMS`, None to look what it is.
    `options`: of the store. Raises InvalidRequestError, InvalidOptionError, InvalidDataError.
    """
    if form is not None and form not in FORMS:
        raise InvalidOptionError(f"format is {form!r}: give one of {', '.join(FORMS)}, or leave it out")
    opened = not isinstance(source, str | Path)
    if options and (opened or catalog is not None):
        raise InvalidOptionError(
            "source_options belong to a source that is a path or URI: others are opened with their own"
        )
    if opened:
        if catalog is not None:
            raise InvalidOptionError(f"catalog is {catalog!r}, but source is a table already: leave one out")
        return _of_object(source, form, version)
    if (catalog is not None or str(source).endswith(METADATA)) and form not in (None, "iceberg"):
        raise InvalidOptionError(f"format is {form!r}, but source is a table of the form iceberg: leave format out")
    if catalog is not None:
        return from_catalog(catalog, str(source), version)
    text = str(source)
    if text.endswith(METADATA):
        folder, _, name = text.rpartition("/")
        return from_metadata(f"{open_storage(folder or '.', options).base_path}/{name}", version, options)
    storage = open_storage(text, options)
    found = form or _form_of(storage.list_dir("")[0])
    if found == "delta":
        return DeltaSnapshot.open(storage.base_path, version, options)
    if found == "iceberg":
        return from_folder(storage, version, options)
    if found == "hudi":
        return _of_table(open_context(storage), version)
    if version is not None:
        raise InvalidOptionError(f"version is {version!r}, but a folder of Parquet files has none: leave it out")
    return ParquetFolder.open(storage)


def _of_table(context: TableContext, version: str | None) -> Snapshot:
    at = None if version is None else instant_of(version, context.config.timezone)
    return HudiSnapshot(context, Scan(context, Request(as_of=at)))


def _form_of(folders: Any) -> str:
    """By the folders that lie in a table's."""
    names = {str(folder).strip("/").rpartition("/")[2] for folder in folders}
    if HOODIE in names:
        return "hudi"
    if "_delta_log" in names:
        return "delta"
    return "iceberg" if "metadata" in names else "parquet"


def _of_object(source: Any, form: str | None, version: str | None) -> Snapshot:
    if isinstance(source, Scan):
        if version is not None or form not in (None, "hudi"):
            raise InvalidOptionError(
                "source is a scan of a Hudi table, which has its moment: leave version and format out"
            )
        return HudiSnapshot(source.context, source)
    library = type(source).__module__.partition(".")[0]
    if library == "deltalake" and form in (None, "delta"):
        if version is not None:
            raise InvalidOptionError(f"version is {version!r}: give a DeltaTable that stands at it")
        return DeltaSnapshot.of(source)
    if library == "pyiceberg" and form in (None, "iceberg"):
        return IcebergSnapshot.of(source, version)
    raise InvalidRequestError(
        f"source is a {type(source).__module__}.{type(source).__qualname__}: give a path or URI, a deltalake.DeltaTable, a "
        "table of pyiceberg or a scan of a Hudi table"
    )
