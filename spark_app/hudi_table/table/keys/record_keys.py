"""Record keys of rows, column by column, as Apache Hudi's key generators make them.

| key generator | record key |
|---|---|
| Simple, TimestampBased | text of the one field |
| Complex | one field: its text (`Raw`, as 0.15.0) or `field:text` (`FieldPrefixed`); more: `f1:v1,f2:v2` |
| Nonpartitioned, Custom | one field: its text; more: as Complex |

Measured on Hudi 0.15.0: in a key of several fields null is `__null__` and empty `__empty__`, and
not all of them may be so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidDataError, InvariantError, UnsupportedTableError
from hudi_table.model.counts import counted
from hudi_table.model.names import EMPTY_KEY, NULL_KEY, RECORD_KEY
from hudi_table.model.options.write_options import CUSTOM_KEYS
from hudi_table.model.table.config import KeyEncoding, TableConfig, TableType
from hudi_table.model.table.layouts import layout_of
from hudi_table.model.table.properties import generator_class, one_complex_field
from hudi_table.model.table.version_properties import GENERATOR_TYPE, PARTITION_TYPES
from hudi_table.table.keys.java_text import column, java_text

Rows: TypeAlias = "pa.Table | pa.RecordBatch"
_TIMEBASED = "hoodie.keygen.timebased."
_KNOWN = frozenset(
    f"org.apache.hudi.keygen.{name}KeyGenerator"
    for name in ("Simple", "Complex", "Nonpartitioned", "TimestampBased", "Custom")
)
_WITHOUT_META = ("Simple", "Complex", "Nonpartitioned")
"""Generators of which Hudi makes tables without meta columns; it refuses all others (measured on
0.15.0 and 1.1.1)."""


@dataclass(frozen=True, slots=True)
class FieldKeys:
    """The record keys of a table's rows, made of their fields. Picklable."""

    config: TableConfig

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that record keys are made of."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.config.record_key))

    def record_keys(self, rows: Rows) -> pa.Array:
        """One record key per row. Raises InvalidDataError for null keys."""
        return record_keys(rows, self.config)

    def keys_or_null(self, rows: Rows) -> pa.Array:
        """As `record_keys`, null where no key can be made."""
        there = pc.greater(_filled(_texts(rows, self.config)), 0)
        return pc.replace_with_mask(pa.nulls(len(there), pa.string()), there, self.record_keys(rows.filter(there)))

    def put_in(self, rows: pa.Table) -> pa.Table:
        """The rows with their record keys in the place of what the column `_hoodie_record_key`
        holds. Raises as `record_keys`."""
        place = rows.schema.get_field_index(RECORD_KEY)
        return rows.set_column(place, rows.schema.field(place), self.record_keys(rows))


def keys_of_stored(config: TableConfig) -> FieldKeys | None:
    """How keys of stored rows are made, None where `_hoodie_record_key` holds them
    (`hoodie.populate.meta.fields`). Where nothing tells the encoding of a key of one complex field,
    it is that of 0.15.0: among files alone any would do, and `unmade_keys` tells of logs."""
    if config.populate_meta_fields:
        return None
    known = config.key_encoding != KeyEncoding.UNKNOWN
    return FieldKeys(config if known else replace(config, key_encoding=KeyEncoding.RAW))


def unmade_keys(config: TableConfig) -> str | None:
    """Why keys of stored rows cannot be made of their fields, where the table stores none: what the
    table is, to go on behind its name."""
    what = "stores no meta columns (hoodie.populate.meta.fields=false)"
    if config.populate_meta_fields:
        return None
    if config.extra.get(CUSTOM_KEYS):
        return f"{what} and has a key generator of its own ({CUSTOM_KEYS})"
    if config.type is not TableType.MERGE_ON_READ:
        return None
    name = generator_class(config)
    if name not in {f"org.apache.hudi.keygen.{short}KeyGenerator" for short in _WITHOUT_META}:
        return f"is merge-on-read, {what} and has the key generator {name}"
    if one_complex_field(config) and not _is_raw(config):
        return (
            f"is merge-on-read, {what} and has a complex key of one field, which releases of Hudi delete as `v` or as "
            f"`{config.record_key[0]}:v`: give such a table one partition field, or several fields of the key, or its meta columns"
        )
    return None


def _is_raw(config: TableConfig) -> bool:
    """Whether all writers make a complex key of one field `v`. Of version 6 those of 0.15.0 do, and
    its tables store the class. On version 9 Hudi 1.1.1 deletes `field:v` though the table says
    otherwise (measured)."""
    if layout_of(config.version).tells_completions:
        return False
    told = config.key_encoding
    return told == KeyEncoding.RAW or (told == KeyEncoding.UNKNOWN and GENERATOR_TYPE not in config.extra)


def refuse_unknown_generator(config: TableConfig) -> None:
    """Raise UnsupportedTableError for a key generator that we do not have, or whose settings the
    table does not tell."""
    name = generator_class(config)
    if name not in _KNOWN:
        raise UnsupportedTableError(
            f"table {config.name!r} has the key generator {name}, which is not supported: its keys cannot be computed here"
        )
    lacks_settings = f"{_TIMEBASED}output.dateformat" in config.extra and len(config.partition_by) > 1
    if lacks_settings and name.endswith(".CustomKeyGenerator"):
        raise UnsupportedTableError(
            f"table {config.name!r} does not state which of its partition fields {', '.join(config.partition_fields)} are "
            f"timestamps: add {PARTITION_TYPES}, e.g. SIMPLE,TIMESTAMP, to its hoodie.properties"
        )


def prefixes_fields(config: TableConfig) -> bool:
    """Whether record keys are written `field:value`."""
    if len(config.record_key) > 1:
        return True
    if not one_complex_field(config):
        return False
    if config.key_encoding == KeyEncoding.UNKNOWN:
        raise InvariantError(f"keys of table {config.name!r} are made before its files have shown how")
    return config.key_encoding == KeyEncoding.FIELD_PREFIXED


def record_keys(rows: Rows, config: TableConfig) -> pa.Array:
    """The record key of every row, a string array without nulls.

    Raises InvalidSchemaError for a missing column or a type without text, InvalidDataError if a key
    is null or empty.
    """
    refuse_unknown_generator(config)
    texts = _texts(rows, config)
    _refuse_empty_keys(_filled(texts), config)
    if not prefixes_fields(config):
        return texts[0]
    parts: list[Any] = []
    for name, text in zip(config.record_key, texts, strict=True):
        shown = pc.if_else(pc.equal(pc.binary_length(text), 0), EMPTY_KEY, text)
        parts += [f"{',' if parts else ''}{name}:", pc.fill_null(shown, NULL_KEY)]
    return pc.binary_join_element_wise(*parts, "")


def _texts(rows: Rows, config: TableConfig) -> list[pa.Array]:
    return [java_text(column(rows, name), name) for name in config.record_key]


def _filled(texts: list[pa.Array]) -> pa.Array:
    """How long the texts of each row are together."""
    lengths = [pc.fill_null(pc.binary_length(text), 0) for text in texts]
    filled = lengths[0]
    for length in lengths[1:]:
        filled = pc.add(filled, length)
    return filled


def _refuse_empty_keys(lengths: pa.Array, config: TableConfig) -> None:
    empty = pc.equal(lengths, 0)
    if not pc.any(empty).as_py():
        return
    positions = pc.indices_nonzero(empty)
    columns = ", ".join(f"'{name}'" for name in config.record_key)
    what = f"record key column {columns}" if len(config.record_key) == 1 else f"every record key column of {columns}"
    raise InvalidDataError(
        f"{what} has null or '' in {counted(len(positions), 'row')}, the first at row {positions[0].as_py()}: "
        "every row needs a key; filter them out or fill them in"
    )
