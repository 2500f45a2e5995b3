"""Statistics of columns put together, and bounds with their type beside them.

Aspects: (1) the least and the greatest bound of each group, for every type of a column; (2) sums,
and the type that is known; (3) bounds of a column
that became wider; (4) bounds that do not compare.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.bounds import NULL_KIND, bounds_of, kind_of, values_of
from hudi_table.codec.metadata.column_stats import combined, stats_of_nulls, stats_of_rows
from hudi_table.codec.metadata.records import KIND_TYPE, STATS_TYPE
from hudi_table.errors import UnsupportedTableError
from tests.support.scale import scaled


def decimal(number: int, scale: int) -> Decimal:
    """All digits of it."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    pa.binary(): st.binary(max_size=8),
    pa.date32(): st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    pa.timestamp("us", tz="UTC"): st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    pa.decimal128(9, 2): st.integers(-(10**9) + 1, 10**9 - 1).map(lambda number: decimal(number, 2)),
    pa.decimal128(30, 15): st.integers(-(10**30) + 1, 10**30 - 1).map(lambda number: decimal(number, 15)),
}
KINDS = {"bool": 2, "int32": 3, "int64": 4, "double": 6, "string": 7, "binary": 8, "date32[day]": 12}


def parts_of(kind: pa.DataType, parts: list[list[Any]], *, plain: bool) -> pa.StructArray:
    """The statistics of a column in files of these values."""
    found = [
        stats_of_rows(pa.table({"c": pa.array(part, kind)}), f"f{n}", ["c"], plain=plain)
        for n, part in enumerate(parts)
    ]
    return pa.concat_arrays(found)


@pytest.mark.parametrize("plain", [False, True], ids=["wrapped by type", "plain"])
@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=scaled(25), deadline=None)
@given(data=st.data())
def test_the_bounds_of_files_together_are_those_of_all_their_values(
    kind: pa.DataType, plain: bool, data: st.DataObject
) -> None:
    values = st.lists(st.none() | VALUES[kind], min_size=1, max_size=4)
    first, second = (data.draw(st.lists(values, min_size=1, max_size=4)) for _ in range(2))
    stats = parts_of(kind, [*first, *second], plain=plain)
    found = combined(stats, np.array([0, len(first)]))
    expected = parts_of(kind, [[v for part in parts for v in part] for parts in (first, second)], plain=plain)
    for name in ("min", "max", "value_count", "null_count", "kind"):
        assert found.field(name).to_pylist() == expected.field(name).to_pylist(), name


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=scaled(10), deadline=None)
@given(data=st.data())
def test_plain_bounds_are_the_values_with_their_type_beside_them(kind: pa.DataType, data: st.DataObject) -> None:
    ordinal, info = kind_of(kind)
    expected = 10 if pa.types.is_decimal(kind) else 16 if pa.types.is_timestamp(kind) else KINDS[str(kind)]
    assert (ordinal, info) == (expected, f"{kind.precision},{kind.scale}" if pa.types.is_decimal(kind) else None)
    values = pa.array(data.draw(st.lists(st.none() | VALUES[kind], max_size=4)), kind)
    plain = bounds_of(values, plain=True)
    kinds = pa.array([{"ordinal": ordinal, "info": info}] * len(values), KIND_TYPE)
    assert values_of(plain, kind, kinds).to_pylist() == values.to_pylist()
    assert values_of(bounds_of(values), kind, pa.nulls(len(values), KIND_TYPE)).to_pylist() == values.to_pylist()


def test_a_file_without_the_column_counts_as_nulls_and_hides_no_type() -> None:
    known = parts_of(pa.int64(), [[1, 2, None]], plain=True)
    for rows in (
        [known, stats_of_nulls(["c"], "g", 4, plain=True)],
        [stats_of_nulls(["c"], "g", 4, plain=True), known],
    ):
        (found,) = combined(pa.concat_arrays(rows), np.array([0])).to_pylist()
        assert (found["value_count"], found["null_count"], found["kind"]["ordinal"]) == (7, 5, 4)
        assert (found["min"]["number"], found["max"]["number"]) == (1, 2)
    (alone,) = combined(stats_of_nulls(["c"], "g", 4, plain=True), np.array([0])).to_pylist()
    assert (alone["min"], alone["max"], alone["kind"]["ordinal"]) == (None, None, NULL_KIND)
    assert combined(pa.array([], STATS_TYPE), np.array([], np.int64)).to_pylist() == []


@pytest.mark.parametrize("plain", [False, True], ids=["wrapped by type", "plain"])
@pytest.mark.parametrize("wider", [(pa.int32(), pa.int64()), (pa.int32(), pa.float32()), (pa.int64(), pa.float64()),
                                   (pa.float32(), pa.float64()), (pa.int32(), pa.float32(), pa.float64())], ids=str)  # fmt: skip
@settings(max_examples=scaled(25), deadline=None)
@given(data=st.data())
def test_bounds_of_a_column_that_became_wider_hold_all_values_in_whatever_order_its_files_are(
    wider: tuple[pa.DataType, ...], plain: bool, data: st.DataObject
) -> None:
    values = {kind: VALUES.get(kind, st.floats(allow_nan=False, width=32)) for kind in wider}
    files = [(kind, data.draw(st.lists(values[kind], min_size=1, max_size=3))) for kind in wider]
    files = data.draw(st.permutations(files))
    other = parts_of(pa.string(), [["a"]], plain=plain)
    found = combined(
        pa.concat_arrays([other, *(parts_of(kind, [part], plain=plain) for kind, part in files)]), np.array([0, 1])
    )
    kinds = found.field("kind") if plain else None
    for name, holds in (("min", np.less_equal), ("max", np.greater_equal)):
        (_, bound) = values_of(found.field(name), wider[-1], kinds).to_pylist()
        for kind, part in files:
            # As a scan reads them: cast from the file's type at once.
            read = pa.array(part, kind).cast(wider[-1], safe=False)
            assert holds(bound, read.to_numpy()).all()
    if plain:
        assert found.field("kind").field("ordinal").to_pylist()[1] == kind_of(wider[-1])[0]


def test_bounds_of_a_number_and_of_a_text_do_not_compare() -> None:
    stats = pa.concat_arrays(
        [parts_of(kind, [[value]], plain=False) for kind, value in ((pa.int64(), 1), (pa.string(), "1"))]
    )
    with pytest.raises(UnsupportedTableError, match="bounds of several types"):
        combined(stats, np.array([0]))
