"""What all tasks of one write share: schema, codec, sizes, merging, bloom filter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_table.codec.avro.schema import with_operation, with_operation_text
from hudi_table.codec.bloom.filters import BloomFilterSpec
from hudi_table.errors import InvalidOptionError
from hudi_table.model.names import MarkerType
from hudi_table.model.options.known import LEVELS
from hudi_table.model.options.write_options import BLOOM_ENABLED, LogBlocks, WriteOptions
from hudi_table.model.table.cdc import Images
from hudi_table.model.table.config import TableConfig
from hudi_table.table.rows.merge import MergeRule
from hudi_table.table.timeline.column_history import ColumnHistory


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """What all tasks of one write share. `schema` is the table's, without meta columns but that of
    the operation where files have it; `avro_schema` says the same.

    `combine`: rows of one key become one before they are written, by `rule` (`combine_orderings`
    decide inside the batch even where commit time decides between stored and incoming). `sort`:
    order rows by record key. `virtual_keys`: the table stores no meta columns
    (`hoodie.populate.meta.fields=false`), so keys of stored rows are made from their columns.
    `memory_bytes`: incoming rows that a task holds at once; more are worked on in parts, by way of
    disk. `cdc`: what a rewrite logs of each change, None for nothing. `event_time`: the column
    whose least and largest value the stats tell. `log_blocks`: what rows are written to logs in,
    `log_marker` how logs are marked.
    `history`: which columns older base files hold under another name.
    """

    schema: pa.Schema
    avro_schema: str
    rule: MergeRule
    combine: bool
    combine_orderings: tuple[str, ...]
    sort: bool
    codec: str
    compression_level: int
    row_group_rows: int
    target_file_size: int
    bloom: BloomFilterSpec | None
    virtual_keys: TableConfig | None = None
    memory_bytes: int = 1 << 28
    cdc: Images | None = None
    event_time: str | None = None
    log_blocks: LogBlocks = LogBlocks.AVRO
    log_marker: MarkerType = MarkerType.APPEND
    history: ColumnHistory | None = None

    @property
    def codec_level(self) -> int | None:
        """The level of compression, None where the codec has none."""
        return self.compression_level if self.codec in LEVELS else None

    @classmethod
    def of(
        cls, options: WriteOptions, schema: pa.Schema, avro_schema: str, *, filters: bool, **more: Any
    ) -> WriteSettings:
        """Settings as the options say; `filters`: whether the index needs them; `more` are fields
        that neither decides."""
        settings = cls(
            schema=schema,
            avro_schema=avro_schema,
            codec=options.codec,
            compression_level=options.compression_level,
            row_group_rows=options.row_group_rows,
            target_file_size=options.target_file_size,
            bloom=bloom_filter(options, needed=filters),
            log_blocks=options.log_blocks,
            **more,
        )
        return settings.with_operation() if options.operation_column else settings

    def with_operation(self) -> WriteSettings:
        """The same for files that have the column of the operation."""
        schema, text = with_operation(self.schema), with_operation_text(self.avro_schema)
        return replace(self, schema=schema, avro_schema=text)

    @classmethod
    def of_rewrite(
        cls, options: WriteOptions, schema: pa.Schema, avro_schema: str, *, filters: bool, **more: Any
    ) -> WriteSettings:
        """Settings of a table service, whose rows are unique and lie in their order; the arguments
        as of `of`."""
        return cls.of(
            options,
            schema,
            avro_schema,
            filters=filters,
            rule=MergeRule(),
            combine=False,
            combine_orderings=(),
            sort=False,
            **more,
        )


def bloom_filter(options: WriteOptions, *, needed: bool) -> BloomFilterSpec | None:
    """The bloom filter that base files get, if any. Raises InvalidOptionError if the index needs it
    and it is switched off."""
    if needed and options.bloom_enabled is False:
        raise InvalidOptionError(
            f"option {BLOOM_ENABLED}=false would leave files that a bloom index has to read in full, and on which Hudi's "
            "fails; remove the option"
        )
    if not (needed or options.bloom_enabled):
        return None
    return BloomFilterSpec(options.bloom_type, options.bloom_entries, options.bloom_fpp, options.bloom_max_entries)
