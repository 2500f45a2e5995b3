"""Hypothesis strategies: Arrow types that a Hudi table stores, values of them, and batches."""

from __future__ import annotations

import decimal
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

FIRST, LAST = datetime.min, datetime.max  # noqa: DTZ901 - hypothesis wants bounds without a zone
NAMES = ("a", "b", "Group", "value", "key", "element", "_x", "array", "fixed", "n1")

_SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(st.characters(codec="utf-8"), max_size=8)),
    (pa.binary(), st.binary(max_size=8)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", tz="UTC"), st.datetimes(FIRST, LAST, timezones=st.just(UTC))),
]


def decimals() -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """Decimal types of 1 to 38 digits with their values."""

    def make(precision: int, scale: int) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
        # Wide enough that no value is rounded on its way.
        context = decimal.Context(prec=40)
        digits = st.integers(-(10**precision) + 1, 10**precision - 1)
        return pa.decimal128(precision, scale), digits.map(lambda n: context.scaleb(decimal.Decimal(n), -scale))

    return st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: make(p, s)))


def typed_values(depth: int = 2) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """(stored type, strategy of its values), nested up to `depth`."""
    scalar = st.one_of(st.sampled_from(_SCALARS), decimals())
    if depth == 0:
        return scalar
    inner = typed_values(depth - 1)
    return st.one_of(scalar, inner.map(_list), inner.map(_map), _structs(inner))


def _list(inner: tuple[pa.DataType, st.SearchStrategy[Any]]) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    kind, values = inner
    return pa.list_(pa.field("element", kind)), st.lists(st.none() | values, max_size=3)


def _map(inner: tuple[pa.DataType, st.SearchStrategy[Any]]) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    kind, values = inner
    keys = st.text(st.characters(codec="utf-8"), max_size=3)
    return pa.map_(pa.string(), kind), st.dictionaries(keys, st.none() | values, max_size=3).map(
        lambda entries: list(entries.items())
    )


def _structs(inner: Any) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    def make(fields: list[tuple[pa.DataType, st.SearchStrategy[Any]]]) -> Any:
        kind = pa.struct([(NAMES[i], field) for i, (field, _) in enumerate(fields)])
        return kind, st.fixed_dictionaries({NAMES[i]: st.none() | values for i, (_, values) in enumerate(fields)})

    return st.lists(inner, min_size=1, max_size=3).map(make)


@st.composite
def tables(draw: st.DrawFn, *, depth: int = 2, columns_max: int = 4, rows_max: int = 6) -> pa.Table:
    """A table of stored types with nulls everywhere."""
    columns = draw(st.lists(typed_values(depth), min_size=1, max_size=columns_max))
    rows = draw(st.integers(0, rows_max))
    arrays = [
        pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind) for kind, values in columns
    ]
    schema = pa.schema([(f"c{i}", kind) for i, (kind, _) in enumerate(columns)])
    return pa.Table.from_arrays(arrays, schema=schema)
