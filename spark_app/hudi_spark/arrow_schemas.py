"""Schemas of frames that are written, as Arrow's.

Fact (pyspark 4.3): a variant arrives as a struct of its two binary fields, so that a table would
hold that and give nothing else back; intervals of months have no Arrow type at all. A collation is
lost on the way without a word: what a table gives back would be compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, VariantType

from hudi_table.errors import InvalidSchemaError


def written_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows that are written. Raises InvalidSchemaError that names a column of a
    type that a table cannot hold."""
    for field in schema.fields:
        for kind in _kinds(field.dataType):
            if isinstance(kind, VariantType):
                raise _refused(field, "cast it to a string, by to_json")
            if isinstance(kind, StringType) and kind.collation != StringType().collation:
                raise _refused(
                    field,
                    f"the collation {kind.collation} would be lost; cast it to string, and collate where it is read",
                )
        try:
            to_arrow_schema(StructType([field]), timezone="UTC")
        except PySparkTypeError as error:
            raise _refused(field, "cast it to one that Arrow has") from error
    return to_arrow_schema(schema, timezone="UTC")


def _kinds(kind: DataType) -> Iterator[DataType]:
    """A type and all within it."""
    yield kind
    if isinstance(kind, StructType):
        parts = [field.dataType for field in kind.fields]
    elif isinstance(kind, MapType):
        parts = [kind.keyType, kind.valueType]
    else:
        parts = [kind.elementType] if isinstance(kind, ArrayType) else []
    for part in parts:
        yield from _kinds(part)


def _refused(field: StructField, advice: str) -> InvalidSchemaError:
    return InvalidSchemaError(
        f"column {field.name!r} of type {field.dataType.simpleString()} has no place in a Hudi table: {advice}"
    )
