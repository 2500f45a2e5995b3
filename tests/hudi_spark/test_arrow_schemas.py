"""Types of frames that a Hudi table cannot hold: refused by the name of their column."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from hudi_spark.arrow_schemas import written_schema
from hudi_spark.datasource.format_options import format_options
from hudi_spark.datasource.writes import RowsWriter
from hudi_table.errors import InvalidSchemaError

KEYS = {"hoodie.datasource.write.recordkey.field": "id"}


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (VariantType(), "cast it to a string, by to_json"),
        (StringType("UNICODE_CI"), "the collation UNICODE_CI would be lost; cast it to string"),
        (ArrayType(MapType(StringType("UTF8_LCASE"), StringType())), "the collation UTF8_LCASE would be lost"),
        (ArrayType(MapType(StringType(), StructType([StructField("x", VariantType())]))), "cast it to a string, by to_json"),
        (YearMonthIntervalType(), "cast it to one that Arrow has"),
    ],
)  # fmt: skip
def test_a_column_of_a_type_without_a_place_in_a_table_is_refused_by_name(
    kind: DataType, advice: str, tmp_path
) -> None:
    schema = StructType([StructField("id", StringType()), StructField("note", kind)])
    with pytest.raises(InvalidSchemaError, match=f"column 'note' of type .* has no place in a Hudi table: {advice}"):
        RowsWriter(format_options({"path": str(tmp_path / "t"), **KEYS}), schema, overwrite=False)
    assert not (tmp_path / "t").exists()


def test_other_columns_get_the_types_of_arrow() -> None:
    schema = StructType([StructField("id", ArrayType(StringType()))])
    assert written_schema(schema) == pa.schema([("id", pa.list_(pa.field("element", pa.string())))])
