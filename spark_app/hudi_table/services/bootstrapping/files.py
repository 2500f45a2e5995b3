"""One file of the source becomes one base file of the table: a skeleton, or the rows anew."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.conform import conform
from hudi_table.codec.parquet_writer import BaseFileWriter, constant_column
from hudi_table.errors import InvalidDataError
from hudi_table.model.job.checkpoint import SourceFile
from hudi_table.model.names import BOOTSTRAP_INSTANT, META_COLUMNS, BaseFileName, join, new_file_id
from hudi_table.model.table.config import TableConfig
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.services.bootstrapping.checks import FULL_RECORD
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.bootstrap.sources import BASE_PATH
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage
from hudi_table.write.checks.request import prepare
from hudi_table.write.keygen.table_keys import TableKeys
from hudi_table.write.settings import WriteSettings

_SKELETON = '{"type":"record","name":"HoodieRecordKey","doc":"","fields":[]}'


@dataclass(frozen=True, slots=True)
class Work:
    """What all files share. `seed` makes their ids."""

    storage: Storage
    folder: ParquetFolder
    config: TableConfig
    keys: TableKeys
    settings: WriteSettings
    seed: uuid.UUID = field(repr=False)

    @classmethod
    def of(
        cls, storage: Storage, folder: ParquetFolder, config: TableConfig, options: Mapping[str, str], seed: uuid.UUID
    ) -> Work:
        """Raises InvalidOptionError, InvalidSchemaError."""
        prepared = prepare(config, "bulk_insert", options, None, folder.schema)
        text = config.create_schema or arrow_to_avro(prepared.schema, table_name=config.name)
        settings = WriteSettings.of_rewrite(
            prepared.options, prepared.schema, text, filters=prepared.index.needs_filters
        )
        return cls(storage, folder, config, TableKeys.of(config), settings, seed)

    @property
    def avro_schema(self) -> str:
        """The table's."""
        return self.settings.avro_schema

    def uri_of(self, file: SourceFile) -> str:
        """The whole location of a file of the source, as Hadoop's `Path` prints it."""
        whole = f"{self.config.extra[BASE_PATH].rstrip('/')}/{file.path}"
        return whole if "://" in whole else f"file:{whole}"


def write_file(work: Work, number: int, file: SourceFile, instant: str) -> WriteStat:
    """Write it. The same file makes the same bytes. Raises InvalidDataError for a null key, and for
    rows that belong to another partition than their folder."""
    partition = file.path.rpartition("/")[0]
    settings = work.settings
    skeleton = instant == BOOTSTRAP_INSTANT
    name = BaseFileName(new_file_id(work.seed, partition, number), f"{number}-0-0", instant)
    data = pa.schema([]) if skeleton else settings.schema
    path, rows = join(partition, str(name)), 0
    meta = [pa.field(column, pa.string()) for column in META_COLUMNS]
    with retry.confirmed(), work.storage.open_write(path) as sink:
        with BaseFileWriter(
            sink,
            pa.schema([*meta, *data]),
            avro_schema=_SKELETON if skeleton else settings.avro_schema,
            bloom=settings.bloom,
            codec=settings.codec,
            level=settings.codec_level,
            row_group_rows=settings.row_group_rows,
        ) as writer:
            for batch in work.folder.batches_of(file, _asked(work, skeleton=skeleton)):
                check_place(work.keys, batch, partition, file.path)
                counters = pa.array(np.arange(rows, rows + len(batch))).cast(pa.string())
                columns = [
                    constant_column(instant, len(batch)),
                    pc.binary_join_element_wise(f"{instant}_{number}", counters, "_"),
                    work.keys.record_keys(batch),
                    constant_column(partition, len(batch)),
                    constant_column(str(name), len(batch)),
                    *conform(batch, data).columns,
                ]
                writer.write(pa.Table.from_arrays(columns, [*META_COLUMNS, *data.names]))
                rows += len(batch)
        size = sink.tell()
    return WriteStat(
        file_id=name.file_id,
        path=path,
        partition_path=partition,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
    )


def _asked(work: Work, *, skeleton: bool) -> list[str]:
    if not skeleton:
        return list(work.settings.schema.names)
    places = [item.partition(".")[0] for item in work.config.partition_fields]
    return list(dict.fromkeys([*work.keys.columns, *places]))


def check_place(keys: TableKeys, batch: pa.RecordBatch, partition: str, path: str) -> None:
    """Raise InvalidDataError for a row that a write would look for in another partition."""
    places = keys.partition_paths(batch).dictionary_decode()
    other = places.filter(pc.not_equal(places, partition))
    if len(other):
        raise InvalidDataError(
            f"{path} holds rows of the partition {other[0].as_py()!r}, and lies in {partition!r}: bootstrap with the columns that the folders "
            f"are named by, or with mode {FULL_RECORD}, which places every row anew",
            path=path,
        )
