"""`open_snapshot`: what is to be imported, by what names it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.sources.imports.base import Snapshot
from hudi_table.sources.imports.delta import DeltaSnapshot
from hudi_table.sources.imports.iceberg import METADATA, IcebergSnapshot, from_catalog, from_folder, from_metadata
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.store.opening import open_storage

FORMS = ("parquet", "delta", "iceberg")


def open_snapshot(
    source: Any, form: str | None, version: str | None, catalog: str | None, options: Mapping[str, str]
) -> Snapshot:
    """The rows of `source` as of now, or as of a version.

    `source`: a path or URI, a `deltalake.DeltaTable`, a `pyiceberg` table, or with `catalog` the
    name of a table there. `form`: one of `FORMS`, None to look what it is. `options`: of the store.
    Raises InvalidRequestError, InvalidOptionError, InvalidDataError.
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
    if version is not None:
        raise InvalidOptionError(f"version is {version!r}, but a folder of Parquet files has none: leave it out")
    return ParquetFolder.open(storage)


def _form_of(folders: Any) -> str:
    """By the folders that lie in a table's."""
    names = {str(folder).strip("/").rpartition("/")[2] for folder in folders}
    if "_delta_log" in names:
        return "delta"
    return "iceberg" if "metadata" in names else "parquet"


def _of_object(source: Any, form: str | None, version: str | None) -> Snapshot:
    library = type(source).__module__.partition(".")[0]
    if library == "deltalake" and form in (None, "delta"):
        if version is not None:
            raise InvalidOptionError(f"version is {version!r}: give a DeltaTable that stands at it")
        return DeltaSnapshot.of(source)
    if library == "pyiceberg" and form in (None, "iceberg"):
        return IcebergSnapshot.of(source, version)
    raise InvalidRequestError(
        f"source is a {type(source).__module__}.{type(source).__qualname__}: give a path or URI, a deltalake.DeltaTable or a "
        "table of pyiceberg"
    )
