"""Java's string and list hashes over Arrow columns, and the bucket numbers that Hudi derives from
them.

Facts (measured on Hudi 0.15.0, 1.0.2 and 1.1.1). A string's hash is `h = 31 * h + unit` over its
UTF-16 code units, wrapped to 32 bits; a list's starts at 1 and adds 0 for null. Bucket = `(listHash
& 0x7fffffff) mod N`. A metadata table key goes to file group `abs(hash) mod N`; those keys are made
of ids: of partitions and columns `name_hash` of the name, of files MD5 of the name.

How: the hash of units c[s..e) is sum(c[i] * 31^(e-1-i)). As 31 is odd it has an inverse modulo
2^32, so with prefix sums P of c[i] * 31^-i it is (P[e] - P[s]) * 31^(e-1): no loop over rows or
bytes. ASCII needs no decoding.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.text.utf8 import Offsets, Utf8, chunks_of, utf8_of
from hudi_table.errors import InvalidDataError, InvalidOptionError
from hudi_table.model.names import EMPTY_KEY, NULL_KEY, name_hash

Hashes = npt.NDArray[np.int32]
Units = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

_PRIME: Final = 31
_INVERSE: Final = pow(_PRIME, -1, 1 << 32)
_BLOCK_UNITS: Final = 64 * 1024
_BUCKET_MASK: Final = np.int32(0x7FFFFFFF)
COLON_RULES: Final = ("0.15", "1.x")


def java_string_hash(keys: pa.Array | pa.ChunkedArray) -> Hashes:
    """`String.hashCode` of each value; 0 for null, as a list's hash counts it."""
    if pt.is_dictionary(keys.type):
        return _concat([_of_dictionary(chunk) for chunk in chunks_of(keys)])
    return _concat([_hash(utf8_of(chunk))[0] for chunk in chunks_of(keys)])


def bucket_of(values: Sequence[pa.Array | pa.ChunkedArray], num_buckets: int) -> Hashes:
    """Bucket of each row from the string columns of its hash fields, in the order of the record
    key's fields."""
    if not values:
        raise InvalidOptionError("A bucket needs at least one hash field.")
    total = np.ones(len(values[0]), np.uint32)
    for column in values:
        total = total * np.uint32(_PRIME) + java_string_hash(column).view(np.uint32)
    return _bucket(total, num_buckets)


def bucket_ids(
    record_keys: pa.Array | pa.ChunkedArray,
    num_buckets: int | Hashes,
    *,
    record_key_fields: Sequence[str],
    hash_fields: Sequence[str] = (),
    colon_rule: str = "0.15",
) -> Hashes:
    """Bucket of each record key, taken apart as Hudi does; `hash_fields` empty means all of
    `record_key_fields`. `num_buckets`: of all rows, or of each.

    Rule "0.15": a key with `:` anywhere is composite; its pieces between commas count if they have
    no colon or their field is a hash field. Rule "1.x": only a key with both `,` and `:` is
    composite, a comma belongs to the value unless a colon follows before the next comma, and a key
    without any hash field counts whole.
    """
    if colon_rule not in COLON_RULES:
        raise InvalidOptionError(f"Unknown colon rule '{colon_rule}': use one of {', '.join(COLON_RULES)}.")
    fields = list(hash_fields) or list(record_key_fields)
    totals = [_key_list_hash(chunk, fields, colon_rule) for chunk in chunks_of(record_keys)]
    return _bucket(_concat([total.view(np.int32) for total in totals]).view(np.uint32), num_buckets)


def file_group_index(keys: pa.Array | pa.ChunkedArray, groups: int | Hashes) -> Hashes:
    """File group of each key in a metadata table partition of `groups` file groups, or of so many
    for each key."""
    return (np.abs(java_string_hash(keys).astype(np.int64)) % groups).astype(np.int32)


@functools.lru_cache(maxsize=65_536)
def name_id(name: str) -> str:
    """Base64 id of a partition path (`.` for a table without partitions) or of a column."""
    return base64.b64encode(name_hash(name).to_bytes(8, "big")).decode("ascii")


def file_id_hash(file_name: str) -> str:
    """Base64 id of a base file's name."""
    return base64.b64encode(hashlib.md5(file_name.encode(), usedforsecurity=False).digest()).decode("ascii")


def _concat(parts: list[Hashes]) -> Hashes:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int32), *parts])


def _bucket(total: npt.NDArray[np.uint32], num_buckets: int | Hashes) -> Hashes:
    counts = np.asarray(num_buckets, np.int32)
    if counts.min(initial=1) < 1:
        raise InvalidOptionError(f"A table of {counts.min()} buckets has no place for rows: give at least 1.")
    numbers: Hashes = (total.view(np.int32) & _BUCKET_MASK) % counts
    return numbers


def _of_dictionary(values: pa.DictionaryArray) -> Hashes:
    hashes = pa.array(java_string_hash(values.dictionary), pa.int32())
    taken = hashes.take(values.indices)
    return np.asarray(taken.fill_null(0) if taken.null_count else taken)


def _hash(values: Utf8) -> tuple[Hashes, Offsets]:
    """(hash, length in UTF-16 code units) of each value."""
    lengths = np.diff(values.offsets)
    hashes = _ranges_hash(values.data, values.offsets)
    high = values.data >= 0x80
    if high.any():
        rows = np.flatnonzero(np.diff(_running(high)[values.offsets]))
        units, unit_offsets = _utf16(values, rows)
        hashes[rows] = _ranges_hash(units, unit_offsets)
        lengths[rows] = np.diff(unit_offsets)
    if values.valid is not None:
        hashes[~values.valid] = 0
    return hashes, lengths


def _running(flags: npt.NDArray[np.bool_]) -> Offsets:
    total = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=total[1:])
    return total


def _utf16(values: Utf8, rows: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.uint16], Offsets]:
    """Code units of the given rows, joined, with their offsets: one decoding for all of them."""
    if len(rows) == len(values):
        joined, ends = values.data, values.offsets
    else:
        lengths = np.diff(values.offsets)[rows]
        ends = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=ends[1:])
        joined = values.data[np.arange(int(ends[-1])) + np.repeat(values.offsets[rows] - ends[:-1], lengths)]
    try:
        units = np.frombuffer(joined.tobytes().decode("utf-8").encode("utf-16-le"), np.dtype("<u2"))
    except UnicodeDecodeError as error:
        raise InvalidDataError(f"A key is not UTF-8: {error}.") from error
    # One unit per character (its lead byte), two if the lead byte says four bytes.
    weight = ((joined & 0xC0) != 0x80).astype(np.int64) + (joined >= 0xF0)
    counts = np.zeros(len(joined) + 1, np.int64)
    np.cumsum(weight, out=counts[1:])
    return units, counts[ends]


def _ranges_hash(units: Units, offsets: Offsets) -> Hashes:
    """Hash of each range of units, in blocks that stay in the processor's cache."""
    count = len(offsets) - 1
    result = np.zeros(count, np.uint32)
    first = 0
    while first < count:
        limit = int(offsets[first]) + _BLOCK_UNITS
        last = max(first + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        begin, end = int(offsets[first]), int(offsets[last])
        powers, inverses = _powers(max(_BLOCK_UNITS, end - begin))
        prefix = np.zeros(end - begin + 1, np.uint32)
        np.cumsum(units[begin:end] * inverses[: end - begin], out=prefix[1:])
        at = offsets[first : last + 1] - begin
        sums = prefix[at[1:]] - prefix[at[:-1]]
        # An empty range has sum 0, so the power that it is given does not matter.
        result[first:last] = sums * powers[np.maximum(at[1:] - 1, 0)]
        first = last
    return result.view(np.int32)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces of record keys between commas: hash and length of the value (of the whole piece if no
    hash field)."""

    hashes: npt.NDArray[np.uint32]
    lengths: Offsets
    kept: npt.NDArray[np.bool_]
    colon: npt.NDArray[np.bool_]
    placeholder: npt.NDArray[np.bool_]


_POWERS: dict[int, tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]] = {}


def _powers(size: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """31^i and 31^-i modulo 2^32 for i below `size`; the usual size is kept."""
    if size in _POWERS:
        return _POWERS[size]
    tables = []
    for base in (_PRIME, _INVERSE):
        steps = np.full(size, base, np.uint32)
        steps[:1] = 1
        tables.append(np.cumprod(steps, dtype=np.uint32))
    pair = (tables[0], tables[1])
    if size == _BLOCK_UNITS:
        _POWERS[size] = pair
    return pair


def _key_list_hash(keys: pa.Array, fields: list[str], rule: str) -> npt.NDArray[np.uint32]:
    """Hash of the list of values that each record key stands for."""
    whole = np.uint32(_PRIME) + java_string_hash(keys).view(np.uint32)
    composite = pc.match_substring(keys, ":")
    if rule == "1.x":
        composite = pc.and_(composite, pc.match_substring(keys, ","))
    rows = np.flatnonzero(composite.fill_null(False).to_numpy(zero_copy_only=False))
    if len(rows):
        chosen = keys if len(rows) == len(keys) else keys.take(pa.array(rows))
        parse = _composite_015 if rule == "0.15" else _composite_1x
        totals, found = parse(chosen, fields)
        whole[rows[found]] = totals[found]
    return whole


def _composite_015(keys: pa.Array, fields: list[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    # Java's split drops empty pieces at the end, so commas at the end count for nothing.
    pieces = pc.split_pattern(pc.utf8_rtrim(keys, ","), ",")
    flat, starts = _flatten(pieces)
    values = _piece_values(flat, fields)
    kept = values.kept | ~values.colon
    hashes = np.where(values.placeholder, np.uint32(0), values.hashes)
    total = np.ones(len(keys), np.uint32)
    for rows, at in _by_ordinal(starts):
        use = kept[at]
        total[rows[use]] = total[rows[use]] * np.uint32(_PRIME) + hashes[at[use]]
    return total, np.ones(len(keys), np.bool_)


def _composite_1x(keys: pa.Array, fields: list[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    flat, starts = _flatten(pc.split_pattern(keys, ","))
    values = _piece_values(flat, fields)
    powers, _ = _powers(max(_BLOCK_UNITS, int(values.lengths.max(initial=0)) + 1))
    count = len(keys)
    total, value = np.ones(count, np.uint32), np.zeros(count, np.uint32)
    is_pair, is_open, is_placeholder, has_pair = np.zeros((4, count), np.bool_)
    for ordinal, (rows, at) in enumerate(_by_ordinal(starts)):
        begins = values.colon[at]
        _append(total, value, is_placeholder, rows[begins & is_open[rows]])
        more = ~begins & is_open[rows]
        longer = rows[more]
        value[longer] = (value[longer] * np.uint32(_PRIME) + np.uint32(ord(","))) * powers[values.lengths[at[more]]]
        value[longer] += values.hashes[at[more]]
        is_placeholder[longer] = False
        # Text before the first colon belongs to that pair's field name, which is then no hash field.
        opens = begins & values.kept[at] & (has_pair[rows] | (ordinal == 0))
        is_open[rows[begins]] = opens[begins]
        has_pair[rows[begins]] = True
        opened = rows[opens]
        is_pair[opened] = True
        value[opened] = values.hashes[at[opens]]
        is_placeholder[opened] = values.placeholder[at[opens]]
    _append(total, value, is_placeholder, np.flatnonzero(is_open))
    return total, is_pair


def _append(
    total: npt.NDArray[np.uint32],
    value: npt.NDArray[np.uint32],
    is_placeholder: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.intp],
) -> None:
    """Put the finished value of each row into the hash of its list; a placeholder stands for null
    or empty: 0."""
    total[rows] = total[rows] * np.uint32(_PRIME) + np.where(is_placeholder[rows], np.uint32(0), value[rows])


def _flatten(pieces: pa.ListArray) -> tuple[pa.Array, Offsets]:
    offsets = np.asarray(pieces.offsets).astype(np.int64)
    return pieces.flatten(), offsets - offsets[0]


def _by_ordinal(starts: Offsets) -> Iterator[tuple[npt.NDArray[np.intp], Offsets]]:
    """For piece 0, 1, …: (rows that have one, its position): a loop over pieces of a key, not over
    keys. A row is looked at as often as it has pieces, so one long key costs the others nothing."""
    counts = np.diff(starts)
    rows = np.arange(len(counts))
    for ordinal in range(int(counts.max(initial=0))):
        rows = rows[counts[rows] > ordinal]
        yield rows, starts[rows] + ordinal


def _piece_values(pieces: pa.Array, fields: list[str]) -> _Pieces:
    hashes, lengths = _hash(utf8_of(pieces))
    colon = pc.match_substring(pieces, ":").to_numpy(zero_copy_only=False)
    kept, placeholder = np.zeros((2, len(pieces)), np.bool_)
    for name in fields:
        rows = np.flatnonzero(pc.starts_with(pieces, f"{name}:").to_numpy(zero_copy_only=False))
        values = pc.utf8_slice_codeunits(pieces.take(pa.array(rows)), len(name) + 1)
        hashes[rows], lengths[rows] = _hash(utf8_of(values))
        placeholder[rows] = pc.is_in(values, pa.array([NULL_KEY, EMPTY_KEY])).to_numpy(zero_copy_only=False)
        kept[rows] = True
    return _Pieces(hashes.view(np.uint32), lengths, kept, colon, placeholder)
