"""Rows that a caller hands over are looked at before they are written: text in UTF-8, no null where
none may be, no key twice in a map.

Arrow takes such arrays from other libraries unseen; a file with them breaks at its readers. The
check costs a few milliseconds for a million values, a tenth of a second for a million entries of
maps: it is Arrow's own, on columns, and of nested ones on the part that belongs to the batch.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.errors import InvalidDataError
from hudi_table.model.counts import counted


def refuse_unsound(rows: pa.RecordBatch) -> None:
    """Raise InvalidDataError that names the column, for text that is no UTF-8 and for nulls in a
    required column or field.

    `rows` have plain layouts, as `conform` gives them.
    """
    for field, values in zip(rows.schema, rows.columns, strict=True):
        _check(values, field, field.name)


def check_layout(batch: pa.RecordBatch) -> None:
    """Raise InvalidDataError for arrays whose buffers do not hold what their type needs; by the
    ends of them alone."""
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        try:
            values.validate()
        except pa.ArrowInvalid as error:
            raise InvalidDataError(f"column '{name}' is no valid Arrow array: {error}") from error


def _check(values: pa.Array, field: pa.Field, path: str) -> None:
    if not field.nullable and values.null_count:
        raise InvalidDataError(
            f"column '{path}' is required and null in {counted(values.null_count, 'row')}: fill it in, or drop the rows"
        )
    kind = field.type
    if pt.is_string(kind) or pt.is_decimal(kind):
        _check_values(values, path)
    elif not _deep(kind):
        return
    elif pt.is_struct(kind):
        valid = values.is_valid() if values.null_count else None
        for number, child in enumerate(kind):
            if _is_checked(child):
                found = values.field(number)
                _check(found if valid is None else found.filter(valid), child, f"{path}.{child.name}")
    elif pt.is_map(kind):
        for name, child, found in (("key", kind.key_field, values.keys), ("value", kind.item_field, values.items)):
            if _is_checked(child):
                _check(_own(values, found), child, f"{path}.{name}")
        _refuse_doubled(values, path)
    else:
        _check(values.flatten(), kind.value_field, f"{path}.element")


def _refuse_doubled(values: pa.MapArray, path: str) -> None:
    """Java's maps and Avro have a key once, and Arrow's have it as often as somebody put it in."""
    sizes = np.where(values.is_valid(), np.diff(values.offsets), 0)
    if sizes.max(initial=0) < 2:
        return
    keys, spans = _own(values, values.keys).dictionary_encode(), np.diff(values.offsets)
    # Numbers of a map's entries, in order of their keys: equal ones are neighbours.
    entries = np.repeat(np.arange(len(values)) * len(keys.dictionary), spans) + keys.indices.to_numpy()
    entries = np.sort(entries[np.repeat(sizes > 0, spans)] if values.null_count else entries)
    doubled = entries[1:] == entries[:-1]
    if doubled.any():
        row, key = divmod(int(entries[:-1][doubled][0]), len(keys.dictionary))
        raise InvalidDataError(
            f"column '{path}' holds a map with the key {keys.dictionary[key].as_py()!r} twice, at row {row} of its batch: "
            "a map has a key once, so keep one of the values"
        )


def _check_values(values: pa.Array, path: str) -> None:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        reason = "holds text that is not UTF-8" if "UTF8" in str(error) else f"holds what its type cannot: {error}"
        raise InvalidDataError(f"column '{path}' {reason}: correct it, or store it as binary") from error


def _own(values: pa.MapArray, entries: pa.Array) -> pa.Array:
    """The entries that belong to these maps: a slice shares those of its neighbours. What a null
    map spans counts."""
    if len(values) == 0:
        return entries.slice(0, 0)
    start, stop = values.offsets[0].as_py(), values.offsets[len(values)].as_py()
    return entries.slice(start, stop - start)


def _is_checked(field: pa.Field) -> bool:
    return not field.nullable or pt.is_string(field.type) or pt.is_decimal(field.type) or _deep(field.type)


def _deep(kind: pa.DataType) -> bool:
    """Whether a nested type has anything to look at."""
    if pt.is_struct(kind):
        return any(_is_checked(child) for child in kind)
    if pt.is_map(kind):
        return True
    return bool(pt.is_list(kind)) and _is_checked(kind.value_field)
