"""The values of a record key's hash fields, joined to one text: what consistent hashing hashes.

Facts (measured): the key is taken apart as for bucket numbers, by the rule of Hudi 0.15 or of 1.x
(see `javahash.bucket_ids`); the values follow each other without a separator, and `__null__` counts
as the text `null`, `__empty__` as nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.model.names import EMPTY_KEY, NULL_KEY

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def joined_values(keys: pa.Array, fields: Sequence[str], rule: str) -> pa.Array:
    """One string for each record key (strings without nulls); `fields` are the hash fields, `rule`
    is "0.15" or "1.x"."""
    composite = pc.match_substring(keys, ":")
    if rule == "1.x":
        composite = pc.and_(composite, pc.match_substring(keys, ","))
    flags = composite.to_numpy(zero_copy_only=False)
    if not flags.any():
        return keys
    texts, found = (_of_015 if rule == "0.15" else _of_1x)(keys.filter(composite), fields)
    parsed = pc.if_else(pa.array(found), texts, keys.filter(composite))
    if flags.all():
        return parsed
    at = np.where(flags, np.cumsum(flags) - 1, len(parsed) + np.cumsum(~flags) - 1)
    return pa.concat_arrays([parsed, keys.filter(pc.invert(composite))]).take(pa.array(at))


def _of_015(keys: pa.Array, fields: Sequence[str]) -> tuple[pa.Array, Flags]:
    # Java's split drops empty pieces at the end, so commas at the end count for nothing.
    pieces, rows = _pieces(pc.utf8_rtrim(keys, ","))
    values, named = _values(pieces, fields)
    colon = pc.match_substring(pieces, ":").to_numpy(zero_copy_only=False)
    return _joined(_spoken(values, named), named | ~colon, rows, len(keys)), np.ones(len(keys), np.bool_)


def _of_1x(keys: pa.Array, fields: Sequence[str]) -> tuple[pa.Array, Flags]:
    """A comma belongs to the value unless a colon follows before the next one; a key without any
    hash field counts whole."""
    pieces, rows = _pieces(keys)
    values, named = _values(pieces, fields)
    begins = pc.match_substring(pieces, ":").to_numpy(zero_copy_only=False)
    position = np.arange(len(rows))
    first = np.r_[True, rows[1:] != rows[:-1]] if len(rows) else np.empty(0, np.bool_)
    start = np.maximum.accumulate(np.where(first, position, 0)) if len(rows) else position
    opener = np.maximum.accumulate(np.where(begins | first, position, 0)) if len(rows) else position
    # Text before the first colon belongs to that pair's field name, which is then no hash field.
    seen = np.cumsum(begins)
    earlier = seen - begins - (seen[start] - begins[start]) if len(rows) else seen
    opens = begins & named & ((earlier > 0) | first)
    kept = opens[opener] if len(rows) else opens
    alone = np.r_[begins[1:] | first[1:], True] if len(rows) else opens
    continued = pc.binary_join_element_wise(pa.scalar(""), pieces, ",")
    spoken = _spoken(values, opens & alone)
    texts = _joined(pc.if_else(pa.array(begins), spoken, continued), kept, rows, len(keys))
    found = np.zeros(len(keys), np.bool_)
    found[rows[opens]] = True
    return texts, found


def _pieces(keys: pa.Array) -> tuple[pa.Array, Positions]:
    """All pieces between commas, and the row of each."""
    lists = pc.split_pattern(keys, ",")
    offsets = np.asarray(lists.offsets).astype(np.int64)
    return lists.flatten(), np.repeat(np.arange(len(keys)), np.diff(offsets))


def _values(pieces: pa.Array, fields: Sequence[str]) -> tuple[pa.Array, Flags]:
    """Of each piece the value behind the name of a hash field, or the piece as it is; and whether
    it has one."""
    named = np.zeros(len(pieces), np.bool_)
    values = pieces
    for name in fields:
        has = pc.starts_with(pieces, f"{name}:")
        values = pc.if_else(has, pc.utf8_slice_codeunits(pieces, len(name) + 1), values)
        named |= has.to_numpy(zero_copy_only=False)
    return values, named


def _spoken(values: pa.Array, named: Flags) -> pa.Array:
    """The values with the texts that stand for the placeholders of null and empty ones."""
    flags = pa.array(named)
    values = pc.if_else(pc.and_(flags, pc.equal(values, NULL_KEY)), "null", values)
    return pc.if_else(pc.and_(flags, pc.equal(values, EMPTY_KEY)), "", values)


def _joined(texts: pa.Array, kept: Flags, rows: Positions, count: int) -> pa.Array:
    """The kept texts of each of `count` rows, one after the other."""
    sizes = np.bincount(rows[kept], minlength=count)
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts.filter(pa.array(kept)))
    return pc.binary_join(lists, "")
