"""What may be bootstrapped in place, and which partitions are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.arrow_types import normal_type, normalise
from hudi_table.codec.parquet import read_footer
from hudi_table.errors import InvalidOptionError, InvalidSchemaError
from hudi_table.model.names import ALL_META_COLUMNS, BOOTSTRAP_INSTANT, FULL_BOOTSTRAP_INSTANT
from hudi_table.model.options.known import CODEC, COMPRESSION_LEVEL, Fate, aliases, known_options
from hudi_table.model.options.write_options import BLOOM_ENABLED, ROW_GROUP_ROWS
from hudi_table.model.table.config import IndexType, TableConfig
from hudi_table.model.table.layouts import has_logical_types
from hudi_table.model.table.version_properties import BOOTSTRAP_INDEX, HFILE_INDEX
from hudi_table.services.importing import described
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.bootstrap.sources import BASE_PATH
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.ports import Storage
from hudi_table.write.checks.create_table import TableSpec, config_of
from hudi_table.write.checks.table_options import table_options

METADATA_ONLY, FULL_RECORD = "MetadataOnly", "FullRecord"

FILE_OPTIONS = frozenset({
    CODEC, COMPRESSION_LEVEL, ROW_GROUP_ROWS, BLOOM_ENABLED, "hoodie.bloom.index.filter.type",
    "hoodie.index.bloom.num_entries", "hoodie.index.bloom.fpp", "hoodie.bloom.index.filter.dynamic.max.entries",
})  # fmt: skip
"""Options of writes that say how a base file is made: a skeleton is one."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Which partitions stay where they are."""

    skeletons: frozenset[str]

    def instant_of(self, path: str) -> str:
        """The instant that the file of the source belongs to."""
        return BOOTSTRAP_INSTANT if path.rpartition("/")[0] in self.skeletons else FULL_BOOTSTRAP_INSTANT


def modes_of(folder: ParquetFolder, mode: str, pattern: str | None) -> Modes:
    """Raises InvalidOptionError."""
    if mode not in (METADATA_ONLY, FULL_RECORD):
        raise InvalidOptionError(f"mode is {mode!r}: give {METADATA_ONLY} or {FULL_RECORD}")
    try:
        matches = re.compile(".*" if pattern is None else pattern, re.DOTALL).fullmatch
    except re.error as error:
        raise InvalidOptionError(f"pattern is {pattern!r}, which is no regular expression: {error}") from error
    partitions = {file.path.rpartition("/")[0] for file in folder.files}
    chosen = mode == METADATA_ONLY
    return Modes(frozenset(path for path in partitions if (matches(path) is not None) is chosen))


def bootstrapped_config(storage: Storage, folder: ParquetFolder, spec: TableSpec) -> TableConfig:
    """The table that is made. Raises InvalidOptionError, InvalidSchemaError."""
    _refuse_idle(spec.options)
    folders = {file.path.rpartition("/")[0] for file in folder.files}
    named = replace(
        described(folder, spec),
        hive_style=any("=" in path for path in folders),
        url_encode=any("%" in path for path in folders),
    )
    config = config_of(named, storage.base_path)
    if config.index is not None and not config.index.type.asks_files:
        raise InvalidOptionError(
            f"index is {config.index.type.value}, which says where a row lies, and the rows of a bootstrap stay where they are: "
            f"give {', '.join(kind.value for kind in IndexType if kind.asks_files)}, or mode {FULL_RECORD}"
        )
    if not config.populate_meta_fields:
        raise InvalidOptionError(
            f"a bootstrap by {METADATA_ONLY} writes nothing but the meta columns: leave hoodie.populate.meta.fields=false out"
        )
    return replace(config, extra={**config.extra, BASE_PATH: _location(folder.place), BOOTSTRAP_INDEX: HFILE_INDEX})


def _refuse_idle(options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError for an option that only a write acts on."""
    for key in sorted(options.keys() - table_options(options).keys()):
        name = aliases().get(key, key)
        option = known_options().get(name)
        if option is None or option.fate is not Fate.ACTS or name in FILE_OPTIONS:
            continue
        if options[key].strip().lower() not in ("", option.default.lower()):
            raise InvalidOptionError(
                f"option {key}={options[key]} acts on writes and services, and a bootstrap is none: leave it out, and give it to them"
            )


def check_source(folder: ParquetFolder, config: TableConfig) -> None:
    """Raise InvalidSchemaError for a file with a column of Hudi's own, and for one that stores a
    column as another type than the table, so that readers of the table would not find it there."""
    table = normalise(folder.schema, logical_types=has_logical_types(config.version))
    stored = all_at_once(folder.storage, [partial(_stored, folder, file.path) for file in folder.files])
    for file, schema in zip(folder.files, stored, strict=True):
        for field in schema:
            if field.name.lower() in ALL_META_COLUMNS:
                raise InvalidSchemaError(
                    f"{file.path} has a column {field.name!r}, the name of one of Hudi's own: write the rows without it",
                    path=file.path,
                )
            if field.name not in table.names:
                continue
            wanted = table.field(field.name).type
            nanos = pt.is_timestamp(field.type) and field.type.unit == "ns"
            if nanos or normal_type(field.type) != wanted:
                raise InvalidSchemaError(
                    f"{file.path} stores the column {field.name!r} as {field.type}, and the table {config.name!r} has {wanted}: bootstrap the "
                    f"folder with mode {FULL_RECORD}, which writes the rows anew",
                    path=file.path,
                )


def _stored(folder: ParquetFolder, path: str) -> pa.Schema:
    with folder.storage.open_read(path) as source:
        return read_footer(source, path=path).schema


def _location(place: str) -> str:
    """As Hadoop names it: there is no `s3` there."""
    return re.sub(r"^s3://", "s3a://", place)
