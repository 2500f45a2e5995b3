"""Rows of different engines, made comparable.

Every engine returns the same table in its own types (dictionary or view strings, decimals of
another width, timestamps with or without a zone). `canonical` gives plain Python values keyed by
the row's key; `assert_same_rows` names every difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

# Meta columns that mean the same in every engine: the other two (sequence number, file name) name tasks and files.
META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")
ALL_META = (*META, "_hoodie_commit_seqno", "_hoodie_file_name")

Row = dict[str, Any]
Rows: TypeAlias = pa.Table | Iterable[Mapping[str, Any]]


def canonical(rows: Rows, *, columns: Sequence[str] | None = None) -> list[Row]:
    """The rows as plain values, sorted. `columns` restricts and orders them; by default all but the
    meta columns."""
    listed = _listed(rows)
    names = list(columns) if columns is not None else _data_columns(listed)
    plain = [{name: _plain(row.get(name)) for name in names} for row in listed]
    return sorted(plain, key=lambda row: [_sort_key(row[name]) for name in sorted(row)])


def by_key(rows: Rows, key: Sequence[str], *, columns: Sequence[str] | None = None) -> dict[tuple[Any, ...], Row]:
    """The rows keyed by the values of `key`; a key that occurs twice is an error, since a Hudi
    table cannot hold it."""
    found: dict[tuple[Any, ...], Row] = {}
    listed = _listed(rows)
    wanted = dict.fromkeys([*key, *(_data_columns(listed) if columns is None else columns)])
    for row in canonical(listed, columns=list(wanted)):
        value = tuple(row[name] for name in key)
        assert value not in found, f"the key {value} occurs twice: {found[value]} and {row}"
        found[value] = row
    return found


def assert_same_rows(
    actual: Rows, expected: Rows, *, key: Sequence[str] = ("id",), columns: Sequence[str] | None = None, of: str = ""
) -> None:
    """Fail with every missing, unexpected and changed row (the first ten of each). `of` says whose
    rows these are.

    Without `columns` all data columns of `expected` are compared and `actual` must have no others.
    """
    mine, theirs = by_key(actual, key, columns=columns), by_key(expected, key, columns=columns)
    lines = [f"  missing:    {theirs[k]}" for k in theirs.keys() - mine.keys()][:10]
    lines += [f"  unexpected: {mine[k]}" for k in mine.keys() - theirs.keys()][:10]
    changed = [f"  {k}: {_changes(mine[k], theirs[k])}" for k in theirs.keys() & mine.keys() if mine[k] != theirs[k]]
    lines += changed[:10]
    if lines:
        head = f"{of or 'rows'}: {len(mine)} rows, expected {len(theirs)}; {len(changed)} differ"
        raise AssertionError("\n".join([head, *sorted(lines)]))


def _changes(actual: Row, expected: Row) -> str:
    names = sorted(actual.keys() | expected.keys())
    return ", ".join(
        f"{name} is {actual.get(name, '(no column)')!r}, expected {expected.get(name, '(no column)')!r}"
        for name in names
        if actual.get(name, "(no column)") != expected.get(name, "(no column)")
    )


def _listed(rows: Rows) -> list[Mapping[str, Any]]:
    return rows.to_pylist() if isinstance(rows, pa.Table) else list(rows)


def _data_columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [name for name in dict.fromkeys(name for row in rows for name in row) if name not in ALL_META]


def _plain(value: Any) -> Any:
    """One value without what differs from engine to engine: time zones, decimal scales, kinds of
    containers."""
    match value:
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value.replace(tzinfo=None)
        case Decimal():
            return value.normalize() + 0
        case float():
            return "NaN" if math.isnan(value) else value
        case dict():
            return {key: _plain(item) for key, item in sorted(value.items(), key=lambda pair: _sort_key(pair[0]))}
        case list() | tuple():
            items = [_plain(item) for item in value]
            return sorted(items, key=_sort_key) if _is_map(value) else items
        case bytearray() | memoryview():
            return bytes(value)
    return value


def _is_map(value: Sequence[Any]) -> bool:
    """Arrow gives a map as a list of pairs; no other list holds tuples."""
    return bool(value) and all(isinstance(item, tuple) and len(item) == 2 for item in value)


def _sort_key(value: Any) -> tuple[str, Any]:
    match value:
        case None:
            return ("", "")
        case bool() | int() | float() | Decimal():
            return ("number", value)
        case str() | bytes() | datetime():
            return (type(value).__name__, value)
    return (type(value).__name__, repr(value))
