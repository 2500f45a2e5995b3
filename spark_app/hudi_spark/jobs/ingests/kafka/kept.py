"""The rows that tasks have kept of a batch, as `hudi_spark.write` takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_spark.jobs.ingest_spark import in_spark_types
from hudi_spark.jobs.ingests.kafka.parts import ReadRange, kept_rows
from hudi_spark.jobs.sifting.parts import Batches
from hudi_spark.routing.numbering import Numbering
from hudi_spark.source_files.packing import PACKED, Packer


@dataclass(frozen=True, slots=True)
class KeptRows:
    """See `ArrowRows`. `kept`: what the tasks keep, of which the ranges `found` count."""

    kept: DataFrame
    found: Mapping[int, ReadRange]
    columns: pa.Schema

    @classmethod
    def of(cls, kept: DataFrame, found: Mapping[int, ReadRange], columns: pa.Schema) -> KeptRows:
        """What goes to the tasks says of the ranges only what it needs."""
        return cls(kept, {number: replace(each, schema=None, made=None) for number, each in found.items()}, columns)

    def whole(self) -> DataFrame:
        """All columns."""
        return self.frame(self.columns.names)

    def frame(self, names: Sequence[str]) -> DataFrame:
        """See `ArrowRows`."""
        schema, plain = in_spark_types(pa.schema([self.columns.field(name) for name in names]))
        return self.kept.mapInArrow(partial(kept_rows, found=self.found, schema=plain), schema)

    def packed(self, numbering: Numbering, sent: Sequence[str]) -> DataFrame:
        """See `ArrowRows`."""
        work = partial(
            _pack, found=self.found, schema=in_spark_types(self.columns)[1], numbering=numbering, sent=tuple(sent)
        )
        return self.kept.mapInArrow(work, PACKED)


def _pack(
    batches: Batches,
    *,
    found: Mapping[int, ReadRange],
    schema: pa.Schema,
    numbering: Numbering,
    sent: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    packer = Packer(sent)
    for rows in kept_rows(batches, found=found, schema=schema):
        yield from packer.add(rows, numbering.of(rows))
    yield from packer.flush()
