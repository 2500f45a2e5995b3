"""Which Arrow types a Hudi table holds, and the plain type that each is stored as.

Facts: a Hudi schema is an Avro record, so names must be Avro names and types Avro types; Spark, the
engine that most tables are written with, widens 8 and 16 bit integers to `int` and stores every
timestamp as `timestamp-micros` in UTC. Hudi 0.15 itself labels `timestamp-millis` columns as micros
on some paths (values wrong by a factor of 1000), so new columns never use it.
`docs/reference/format.md` has the table for users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.logical_types.variants import VARIANT, is_variant, variant_field
from hudi_table.codec.logical_types.vectors import is_vector, vector_of
from hudi_table.errors import InvalidSchemaError

DECIMAL_PRECISION_MAX = 38
ELEMENT = "element"
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_CAST_TO: list[tuple[Callable[[pa.DataType], bool], str]] = [
    (pt.is_null, "has no type of its own: cast it to one"),
    (pt.is_uint64, "does not fit a signed 64-bit integer: cast it to int64 or decimal(20, 0)"),
    (pt.is_float16, "has no Avro type: cast it to float32"),
    (pt.is_time, "cannot be read by Spark: cast it to int64 or string"),
    (pt.is_duration, "has no Avro type: cast it to int64"),
    (pt.is_interval, "has no Avro type: split it into integer columns"),
    (pt.is_union, "has no Spark type: use a struct of nullable fields"),
]


def unsupported_columns(schema: pa.Schema) -> list[tuple[str, str]]:
    """(column, reason) for each column that a Hudi table cannot hold; nested fields are named by
    dotted path."""
    found: list[tuple[str, str]] = []
    _check_names(list(schema), "", found)
    for field in schema:
        found += _type_faults(field.type, field.name)
    return found


def normalise(schema: pa.Schema, *, known: pa.Schema | None = None, logical_types: bool = False) -> pa.Schema:
    """The schema as a table stores it: plain layouts, Spark's integer widths, timestamps in
    microseconds UTC.

    A timestamp without zone is stored as the instant it would be in UTC. A column that `known`, the
    table's schema, has already takes its type from there if that stores the same values: a column
    of the null type, a timestamp of another unit or zone, bytes of a fixed size, a type that only
    other writers use. A list of a fixed size becomes a vector where the column is one; with
    `logical_types` a new column of such lists holds vectors, and one that is marked so variants.
    Raises InvalidSchemaError that names every column of a type that cannot be held."""
    chosen = {} if known is None else {field.name: field for field in map(_type_chooser(known), schema) if field}
    if logical_types:
        chosen |= {f.name: f for f in map(_logical, schema) if f and (known is None or f.name not in known.names)}
    faults = unsupported_columns(
        pa.schema([pa.field(field.name, pa.string()) if field.name in chosen else field for field in schema])
    )
    if faults:
        listed = "; ".join(f"column '{name}' {reason}" for name, reason in faults)
        raise InvalidSchemaError(f"A Hudi table cannot hold this schema: {listed}.")
    return pa.schema([chosen.get(field.name) or normal_field(field) for field in schema])


def _type_chooser(known: pa.Schema) -> Callable[[pa.Field], pa.Field | None]:
    def choose(field: pa.Field) -> pa.Field | None:
        position = known.get_field_index(field.name)
        if position < 0:
            return None
        kind, have = field.type, known.field(position).type
        timestamps = pt.is_timestamp(kind) and pt.is_timestamp(have)
        same = kind == have or pt.is_null(kind) or timestamps or (_is_bytes(kind) and _is_bytes(have))
        same = same or (is_vector(have) and is_any_list(kind)) or (is_variant(field) and have == VARIANT)
        return pa.field(field.name, have, field.nullable) if same else None

    return choose


def _logical(field: pa.Field) -> pa.Field | None:
    """A new column of a type that Hudi 1.2 has of its own; None for others."""
    if is_variant(field):
        return variant_field(field)
    if is_vector(field.type):
        return field.with_type(vector_of(field.type.value_type, field.type.list_size)).remove_metadata()
    return None


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(normal_type(kind) == pa.binary())


def normal_field(field: pa.Field) -> pa.Field:
    """One field as a table stores it; its metadata is dropped."""
    return pa.field(field.name, normal_type(field.type), field.nullable)


def normal_type(kind: pa.DataType) -> pa.DataType:
    """The type that values of `kind` are stored as. Only for types that `unsupported_columns`
    accepts."""
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return normal_type(kind.value_type)
    if pt.is_struct(kind):
        return pa.struct([normal_field(field) for field in kind])
    if pt.is_map(kind):
        item = pa.field("value", normal_type(kind.item_type), kind.item_field.nullable)
        return pa.map_(pa.string(), item)
    if is_any_list(kind):
        return list_of(normal_type(kind.value_type), nullable=kind.value_field.nullable)
    return _normal_scalar(kind)


def list_of(kind: pa.DataType, *, nullable: bool) -> pa.DataType:
    """A list whose item field has the name that Parquet's own specification gives it."""
    return pa.list_(pa.field(ELEMENT, kind, nullable))


def _normal_scalar(kind: pa.DataType) -> pa.DataType:
    if kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16()):
        return pa.int32()
    if pt.is_uint32(kind):
        return pa.int64()
    if pt.is_large_string(kind) or pt.is_string_view(kind):
        return pa.string()
    if pt.is_large_binary(kind) or pt.is_binary_view(kind) or pt.is_fixed_size_binary(kind):
        return pa.binary()
    if pt.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if pt.is_date64(kind):
        return pa.date32()
    if pt.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    return kind


def is_any_list(kind: pa.DataType) -> bool:
    """Whether the type is a list in any of Arrow's layouts."""
    return bool(
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def _check_names(fields: list[pa.Field], prefix: str, faults: list[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        path = prefix + field.name
        if not _AVRO_NAME.fullmatch(field.name):
            faults.append((path, "is not an Avro name (ASCII letters, digits and _, no leading digit): rename it"))
        folded = field.name.lower()
        if folded in seen:
            faults.append((path, f"has the same name as '{seen[folded]}' for engines that ignore case: rename one"))
        seen.setdefault(folded, field.name)


def _type_faults(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(kind, pa.BaseExtensionType):
        yield path, f"of type {kind} is an extension type: cast it to {kind.storage_type}"
        return
    for matches, reason in _CAST_TO:
        if matches(kind):
            yield path, f"of type {kind} {reason}"
            return
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind) or is_any_list(kind):
        yield from _type_faults(kind.value_type, path)
    elif pt.is_struct(kind):
        yield from _struct_faults(kind, path)
    elif pt.is_map(kind):
        if normal_type(kind.key_type) != pa.string():
            yield path, f"of type {kind} has keys that are not strings: cast the keys to string"
        yield from _type_faults(kind.item_type, path)
    elif pt.is_decimal(kind):
        yield from _decimal_faults(kind, path)


def _struct_faults(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    fields = list(kind)
    if not fields:
        yield path, "is a struct without fields, which Parquet cannot store: drop it"
    names: list[tuple[str, str]] = []
    _check_names(fields, f"{path}.", names)
    yield from names
    for field in fields:
        yield from _type_faults(field.type, f"{path}.{field.name}")


def _decimal_faults(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    if kind.precision > DECIMAL_PRECISION_MAX:
        yield path, f"of type {kind} has more than {DECIMAL_PRECISION_MAX} digits: cast it to a smaller decimal"
    elif not 0 <= kind.scale <= kind.precision:
        yield path, f"of type {kind} has a scale outside 0 to {kind.precision}: cast it to another decimal"
