"""Random conditions over random tables find the rows that a plain evaluation finds, which knows
numbers as fractions, moments as whole numbers and SQL's three-valued logic.

Every type that can be compared, with its ends, zeros, NaN and nulls; constants that the types do
not hold; copy-on-write and merge-on-read, with logs, partitions and column statistics.
"""

from __future__ import annotations

import math
import operator
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table import HudiTable, create_table
from tests.support.scale import scaled

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPARE = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
NUMBERS = [0, 1, -1, 2, 110, 2**24 + 1, 2**31 - 1, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 10**10 - 1, 10**20]
FLOATS = ["0", "-0.0", "1.1", "-1.1", "0.1", "2.5", "16777217", "3.4028235e38", "1e39", "1e300", "5e-324"]
TEXTS = ["", "a", "ab", "b", "A", "é", "a%", "it's", "z\U0001f600", "\uffff"]
MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), EPOCH,
    datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), datetime(2024, 2, 29, 12, 0, 0, 1_500, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A type: stored values (moments and decimals as their steps), and constants as (text, value
    that compares with them)."""

    stored: pa.DataType
    steps: list[Any]
    constants: list[tuple[str, Any]]

    def cell(self, step: Any) -> Any:
        """What a constant compares with."""
        return Fraction(step, 10**self.stored.scale) if pa.types.is_decimal(self.stored) and step is not None else step

    def column(self, steps: list[Any]) -> pa.Array:
        if pa.types.is_decimal(self.stored):
            exact = Context(prec=60)
            values = [None if s is None else exact.scaleb(Decimal(s), -self.stored.scale) for s in steps]
            return pa.array(values, self.stored)
        if pa.types.is_temporal(self.stored):
            return pa.array(steps, pa.int32() if self.stored.bit_width == 32 else pa.int64()).view(self.stored)
        return pa.array(steps, self.stored)


def numeric(stored: pa.DataType, low: int, high: int) -> Kind:
    scale = stored.scale if pa.types.is_decimal(stored) else 0
    exact = Context(prec=60)
    written = [exact.add(Decimal(n), Decimal(part)) for n in NUMBERS for part in ("0", "0.5", "-0.005", "1e-12")]
    written += [exact.scaleb(Decimal(n), -scale) for n in (low, high)] + [Decimal("1e40"), Decimal("-1e40")]
    return Kind(
        stored, [n for n in [*NUMBERS, low, high] if low <= n <= high], [(str(w), Fraction(w)) for w in written]
    )


def floating(stored: pa.DataType) -> Kind:
    with np.errstate(over="ignore"):
        near = [float(np.float32(text)) if stored == pa.float32() else float(text) for text in FLOATS]
    constants = [float(text) if math.isinf(value) else value for text, value in zip(FLOATS, near, strict=True)]
    values = [value for value in near if math.isfinite(value)] + [math.nan, math.inf, -math.inf]
    return Kind(stored, values, list(zip(FLOATS, constants, strict=True)))


def moments(stored: pa.DataType) -> Kind:
    micros = [(moment - EPOCH) // timedelta(microseconds=1) for moment in MOMENTS]
    texts = [f"'{moment.replace(tzinfo=None).isoformat()}'" for moment in MOMENTS]
    beyond = [253_402_300_800_000_000, -(2**63), 2**63 - 1]
    return Kind(stored, [*micros, *beyond], list(zip(texts, micros, strict=True)))


DAYS = [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]
ORDINALS = [day.toordinal() - date(1970, 1, 1).toordinal() for day in DAYS]
KINDS = {
    "i": numeric(pa.int32(), -(2**31), 2**31 - 1),
    "l": numeric(pa.int64(), -(2**63), 2**63 - 1),
    "cents": numeric(pa.decimal128(10, 2), 1 - 10**10, 10**10 - 1),
    "fine": numeric(pa.decimal128(38, 10), 1 - 10**38, 10**38 - 1),
    "f": floating(pa.float32()),
    "d": floating(pa.float64()),
    "s": Kind(pa.string(), TEXTS, [("'{}'".format(text.replace("'", "''")), text) for text in TEXTS]),
    "b": Kind(pa.binary(), [text.encode() for text in TEXTS], [("'a'", b"a"), ("''", b"")]),
    "ok": Kind(pa.bool_(), [False, True], [("true", True), ("false", False)]),
    "day": Kind(pa.date32(), [*ORDINALS, 2**31 - 1, -(2**31)], [(f"'{d}'", n) for d, n in zip(DAYS, ORDINALS, strict=True)]),
    "at": moments(pa.timestamp("us", "UTC")),
    "wall": moments(pa.timestamp("us")),
}  # fmt: skip
SCHEMA = pa.schema([("id", pa.string()), *((name, kind.stored) for name, kind in KINDS.items())])
ROW = st.fixed_dictionaries({name: st.none() | st.sampled_from(kind.steps) for name, kind in KINDS.items()})


def conditions_on(name: str) -> st.SearchStrategy[Any]:
    constant = st.sampled_from(KINDS[name].constants)
    column = st.just(name)
    equal = ["=", "!="]
    found = [
        st.tuples(st.sampled_from(equal if name == "ok" else list(COMPARE)), column, constant),
        st.tuples(st.sampled_from(["in", "not in"]), column, st.lists(constant, min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["is null", "is not null"]), column),
    ]
    if name == "s":
        found.append(st.tuples(st.just("like"), column, st.sampled_from(["a%", "%", "_", "", "%b", "it%"])))
    elif name != "ok":
        found.append(st.tuples(st.sampled_from(["between", "not between"]), column, constant, constant))
        found.append(st.tuples(st.sampled_from([f"{op} turned" for op in COMPARE]), column, constant))
    return st.one_of(found)


CONDITION = st.recursive(
    st.sampled_from(list(KINDS)).flatmap(conditions_on),
    lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner),
    max_leaves=4,
)


def as_text(condition: Any) -> str:
    op, first, *rest = condition
    if op in ("and", "or"):
        return f"({as_text(first)} {op} {as_text(rest[0])})"
    if op == "not":
        return f"not {as_text(first)}"
    if op.endswith("in"):
        return f"{first} {op} ({', '.join(text for text, _ in rest[0])})"
    if op.endswith("between"):
        return f"{first} {op} {rest[0][0]} and {rest[1][0]}"
    if op == "like":
        return f"{first} like '{rest[0]}'"
    if op.endswith("turned"):
        return f"{rest[0][0]} {op.split()[0]} {first}"
    return f"{first} {op}" + (f" {rest[0][0]}" if rest else "")


def truth(condition: Any, row: dict[str, Any]) -> bool | None:
    op, first, *rest = condition
    if op in ("and", "or"):
        found = [truth(first, row), truth(rest[0], row)]
        decisive = op == "or"
        return decisive if decisive in found else None if None in found else not decisive
    if op.startswith("not"):
        inner = truth((op[4:], first, *rest) if op[4:] else first, row)
        return None if inner is None else not inner
    value = KINDS[first].cell(row[first])
    if op.startswith("is"):
        return (value is None) == (op == "is null")
    return None if value is None else outcome(op, value, rest)


def outcome(op: str, value: Any, rest: list[Any]) -> bool:
    if op == "in":
        return any(value == constant for _, constant in rest[0])
    if op == "between":
        return bool(rest[0][1] <= value <= rest[1][1])
    if op == "like":
        pattern = "".join({"%": ".*", "_": "."}.get(mark, re.escape(mark)) for mark in rest[0])
        return re.fullmatch(pattern, value, re.DOTALL) is not None
    left, right = value, rest[0][1]
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    name, *turned = op.split()
    return bool(COMPARE[name](right, left) if turned else COMPARE[name](left, right))


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    columns = [kind.column([row[name] for row in rows]) for name, kind in KINDS.items()]
    return pa.table([pa.array([row["id"] for row in rows]), *columns], schema=SCHEMA)


def written(
    rows: list[dict[str, Any]],
    kept: list[bool],
    partition: str | None,
    kind: Literal["CopyOnWrite", "MergeOnRead"],
    statistics: bool,
) -> HudiTable:
    """A table of the rows, which came in two files; those that are not kept had the values of
    others before."""
    table = create_table(
        f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id", partition_by=partition, type=kind, index="Simple"
    )
    others = [rows[at - 1] for at in range(len(rows))]
    before = [
        row if keeps else other | {name: row[name] for name in ("id", partition) if name}
        for row, other, keeps in zip(rows, others, kept, strict=True)
    ]
    half = max(1, len(rows) // 2)
    for part in (before[:half], before[half:]):
        if part:
            table.insert(as_table(part), options={"hoodie.parquet.small.file.limit": "0"})
    changed = [row for row, keeps in zip(rows, kept, strict=True) if not keeps]
    if changed:
        table.upsert(as_table(changed))
    if statistics:
        table.build_metadata(["column_stats"])
    return table


@settings(max_examples=scaled(15), deadline=None)
@given(
    rows=st.lists(st.tuples(ROW, st.booleans()), min_size=1, max_size=8),
    partition=st.sampled_from([None, "i", "s", "ok"]),
    kind=st.sampled_from(["CopyOnWrite", "MergeOnRead"]),
    statistics=st.booleans(),
    conditions=st.lists(CONDITION, min_size=8, max_size=8),
)
def test_a_condition_finds_the_rows_for_which_it_is_true(
    rows: list[tuple[dict[str, Any], bool]],
    partition: str | None,
    kind: Literal["CopyOnWrite", "MergeOnRead"],
    statistics: bool,
    conditions: list[Any],
) -> None:
    named = [row | {"id": f"k{at}"} for at, (row, _) in enumerate(rows)]
    table = written(named, [keeps for _, keeps in rows], partition, kind, statistics)
    for condition in conditions:
        wanted = [row["id"] for row in named if truth(condition, row)]
        text = as_text(condition)
        assert sorted(table.scan(["id"], text).to_arrow()["id"].to_pylist()) == wanted, text
