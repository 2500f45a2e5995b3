"""Vectors: columns of type `VECTOR`, which Arrow has as lists of a fixed size and files as bytes of
one.

Facts (measured on Hudi 1.2.0): a Parquet column is `fixed_len_byte_array` of the elements in little
endian, and the footer's `hoodie.vector.columns` names it as `v:VECTOR(3)`, with `, DOUBLE` or
`, INT8` for elements that are no `FLOAT`; the Avro type is a `fixed` named
`vector_<element>_<dimension>` without a namespace, of which a second column holds the name alone.
Rows of Avro blocks hold the same bytes. Vectors stand at the top level of a table's columns, and
their elements are never null.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

LOGICAL_TYPE: Final = "vector"
FOOTER_KEY: Final = "hoodie.vector.columns"
ELEMENTS: Final = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
_NAMES: Final = {kind: name for name, kind in ELEMENTS.items()}
Data = TypeVar("Data", pa.RecordBatch, pa.Table)


def vector_of(element: pa.DataType, dimension: int) -> pa.DataType:
    """The Arrow type of a column of vectors. Its field is the one that Arrow gives it: of another
    one a pickled schema keeps nothing (pyarrow 26)."""
    return pa.list_(element, dimension)


def is_vector(kind: pa.DataType) -> bool:
    """Whether the type is one that a column of vectors can have: a list of a fixed size of float32,
    float64 or int8."""
    return bool(pt.is_fixed_size_list(kind) and kind.list_size > 0 and kind.value_type in _NAMES)


def has_vectors(schema: pa.Schema) -> bool:
    """Whether a column of the schema holds vectors."""
    return any(pt.is_fixed_size_list(kind) for kind in schema.types)


def width_of(kind: pa.DataType) -> int:
    """Bytes of a vector."""
    return int(kind.list_size) * int(kind.value_type.bit_width) // 8


def avro_of(kind: pa.DataType) -> dict[str, Any]:
    """The Avro type of a column of vectors."""
    element = _NAMES[kind.value_type]
    return {
        "type": "fixed",
        "name": f"vector_{element.lower()}_{kind.list_size}",
        "namespace": "",
        "size": width_of(kind),
        "logicalType": LOGICAL_TYPE,
        "dimension": kind.list_size,
        "elementType": element,
        "storageBacking": "FIXED_BYTES",
    }


def vector_in(avro: dict[str, Any]) -> pa.DataType | None:
    """The vectors that an Avro `fixed` holds; None if its bytes are not those of vectors that are
    known here."""
    element = ELEMENTS.get(str(avro.get("elementType")))
    if avro.get("logicalType") != LOGICAL_TYPE or element is None or avro.get("storageBacking") != "FIXED_BYTES":
        return None
    kind = vector_of(element, int(avro["dimension"]))
    return kind if width_of(kind) == avro["size"] else None


def footer_text(schema: pa.Schema) -> str:
    """The columns of vectors as a footer names them; empty if there is none."""
    return ",".join(f"{field.name}:{_words(field.type)}" for field in schema if is_vector(field.type))


def _words(kind: pa.DataType) -> str:
    element = _NAMES[kind.value_type]
    return f"VECTOR({kind.list_size})" if element == "FLOAT" else f"VECTOR({kind.list_size}, {element})"


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as files hold it: bytes of a fixed size for vectors."""
    if not has_vectors(schema):
        return schema
    return pa.schema([f.with_type(pa.binary(width_of(f.type))) if is_vector(f.type) else f for f in schema])


def with_lists(schema: pa.Schema) -> pa.Schema:
    """The schema for whoever has no lists of a fixed size, as Spark."""
    if not has_vectors(schema):
        return schema
    return pa.schema([f.with_type(pa.list_(f.type.value_field)) if is_vector(f.type) else f for f in schema])


def checked(values: pa.Array) -> pa.Array:
    """The vectors. Raises pa.ArrowInvalid where an element is null."""
    if values.values.null_count and values.flatten().null_count:
        raise pa.ArrowInvalid("an element of a vector is null")
    return values


def stored_array(values: pa.Array) -> pa.Array:
    """Vectors as their bytes, without a copy. Raises pa.ArrowInvalid where an element is null."""
    kind, elements = checked(values).type, values.values
    size = kind.value_type.bit_width // 8
    data = elements.buffers()[1]
    if data is None:
        data = pa.py_buffer(b"")
    elif elements.offset:
        data = data.slice(elements.offset * size)
    return pa.Array.from_buffers(
        pa.binary(width_of(kind)), len(values), [values.buffers()[0], data], values.null_count, values.offset
    )


def vector_array(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Bytes of a fixed size as vectors, without a copy. Raises pa.ArrowInvalid where the size is
    another one."""
    if values.type.byte_width != width_of(kind):
        raise pa.ArrowInvalid(f"{values.type.byte_width} bytes are no {_words(kind)}")
    validity, data = values.buffers()
    count = (len(values) + values.offset) * kind.list_size
    if data is None:
        data = pa.py_buffer(bytes(width_of(kind) * (len(values) + values.offset)))
    elements = pa.Array.from_buffers(kind.value_type, count, [None, data], 0)
    return pa.Array.from_buffers(kind, len(values), [validity], values.null_count, values.offset, children=[elements])


def list_array(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Lists as vectors. Raises pa.ArrowInvalid where one has another length, or an element is
    null."""
    import pyarrow.compute as pc  # whoever reads schemas alone is to load none of it

    lengths = {int(n) for n in pc.list_value_length(values).drop_null().unique().to_pylist()}
    if lengths - {kind.list_size}:
        raise pa.ArrowInvalid(f"a list of {min(lengths - {kind.list_size})} elements is no {_words(kind)}")
    items = values.flatten()
    if items.null_count:
        raise pa.ArrowInvalid("an element of a vector is null")
    # Arrow's own cast (26.0) reads beyond the values of an array that holds none.
    valid = np.asarray(values.is_valid())
    numbers = np.zeros((len(values), kind.list_size), kind.value_type.to_pandas_dtype())
    numbers[valid] = items.to_numpy().reshape(-1, kind.list_size)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1)), type=kind, mask=pa.array(~valid))


def as_stored(data: Data) -> Data:
    """Rows with vectors as bytes, as whoever writes files takes them."""
    return _cast(data, stored_schema(data.schema))


def as_vectors(data: Data, schema: pa.Schema) -> Data:
    """Rows with vectors in those columns that have them in `schema`, which names all columns of the
    rows."""
    if not has_vectors(schema):
        return data
    kinds = dict(zip(schema.names, schema.types, strict=True))
    return _cast(data, pa.schema([f.with_type(kinds[f.name]) if is_vector(kinds[f.name]) else f for f in data.schema]))


def _cast(data: Data, schema: pa.Schema) -> Data:
    if schema is data.schema:
        return data
    columns = [_column(have, kind) for have, kind in zip(data.columns, schema.types, strict=True)]
    build = pa.Table.from_arrays if isinstance(data, pa.Table) else pa.RecordBatch.from_arrays
    return build(columns, schema=schema)


def _column(values: Any, kind: pa.DataType) -> Any:
    if values.type == kind:
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([_column(chunk, kind) for chunk in values.chunks], type=kind)
    return vector_array(values, kind) if is_vector(kind) else stored_array(values)
