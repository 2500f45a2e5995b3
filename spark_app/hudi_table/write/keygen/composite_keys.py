"""Composite record keys whose text is one though their values differ.

A key of several fields is written `a:1,b:2` without any escape (Hudi's ComplexKeyGenerator), so the
values `x,b:y` and `z` make the text of `x` and `y,b:z`; and a null is written `__null__`, an empty
text `__empty__`. Rows of such keys would be one. Within one write they are refused; a row that is
stored already looks like its update.

Two keys have one text only if `,field:` stands in it more often than the key has such fields: a
comma begins that pattern and no field's name holds one, so occurrences do not overlap. Those rows
alone are compared by their values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.errors import InvalidDataError
from hudi_table.model.names import EMPTY_KEY, NULL_KEY
from hudi_table.model.table.config import TableConfig
from hudi_table.table.keys.java_text import column, java_text

WORDS = ((NULL_KEY, "a null"), (EMPTY_KEY, "an empty text"))
"""Texts of a key's field that stand for something else, and what."""


def doubtful_keys(
    rows: pa.RecordBatch, config: TableConfig, keys: pa.Array, places: pa.Array | None
) -> pa.Table | None:
    """Of those keys whose text other values may have too: `key`, with the place it is unique in,
    and `values`; None if none are.

    `places`: the partition path of each row where keys are unique in a partition alone. Raises
    InvalidDataError for the words that stand for null and empty.
    """
    names = config.record_key
    if len(names) < 2:
        return None
    for name in names:
        _refuse_words(column(rows, name), name)
    doubtful = None
    for name in names[1:]:
        often = pc.not_equal(pc.count_substring(keys, f",{name}:"), 1)
        doubtful = often if doubtful is None else pc.or_(doubtful, often)
    if not pc.any(doubtful).as_py():
        return None
    some = pa.table([column(rows, name).filter(doubtful) for name in names], names=list(names))
    found = keys.filter(doubtful)
    if places is not None:
        found = pc.binary_join_element_wise(places.filter(doubtful).cast(pa.string()), found, "\0")
    return pa.table({"key": found, "values": _unambiguous_keys(some)})


@dataclass(slots=True)
class KeyCollisions:
    """The doubtful keys of one write, each with the values that it was first met with."""

    met: pa.Table | None = field(default=None)

    def add(self, doubtful: pa.Table | None) -> None:
        """Raises InvalidDataError if a key was met with other values."""
        if doubtful is None:
            return
        both = doubtful if self.met is None else pa.concat_tables([self.met, doubtful])
        self.met = both.group_by(["key", "values"]).aggregate([])
        if len(pc.unique(self.met.column("key"))) == len(self.met):
            return
        counted = self.met.group_by("key").aggregate([([], "count_all")])
        key = counted.filter(pc.greater(counted.column("count_all"), 1)).column("key")[0].as_py().rpartition("\0")[2]
        raise one_text(key)


def one_text(key: str) -> InvalidDataError:
    """The error for a record key that different values have."""
    shown = key if len(key) <= 200 else f"{key[:200]}…"
    return InvalidDataError(
        f"rows with different values have one record key, {shown!r}: Hudi writes the fields of a key side by side without an "
        "escape, so one of the rows would be lost; keep ',' and ':' out of the key columns, or make one column of them"
    )


def word_in_key(name: str, word: str, meaning: str) -> InvalidDataError:
    """The error for a key field that holds one of `WORDS`."""
    return InvalidDataError(
        f"record key column '{name}' holds the text {word!r}, by which Hudi writes {meaning} in a key of several "
        "columns: rows of both would be one; use another text"
    )


def _refuse_words(values: Any, name: str) -> None:
    if not pt.is_string(values.type):
        return
    for word, meaning in WORDS:
        if pc.any(pc.equal(values, word)).as_py():
            raise word_in_key(name, word, meaning)


def _unambiguous_keys(rows: pa.Table) -> Any:
    """One text of the key's values that no other values have: each with its length before it."""
    parts: list[Any] = []
    for name in rows.schema.names:
        text = java_text(column(rows, name), name)
        parts += [pc.fill_null(pc.binary_length(text).cast(pa.string()), "-"), pc.fill_null(text, "")]
    return pc.binary_join_element_wise(*parts, ":")
