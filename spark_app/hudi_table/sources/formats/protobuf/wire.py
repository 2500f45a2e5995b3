"""Messages of Protocol Buffers cut into their fields, all messages at once: in each step every
message gives its next field. The last few are cut one by one, which is faster then.

Facts (protobuf's encoding): a field is a tag (number and wire type), then a varint, 4 or 8 bytes,
or a length and so many bytes; fields come in any order and may come again. Groups (wire types 3 and
4) are passed over. A tag has at most five bytes, a varint ten; a group holds at most a hundred
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
PADDING = 16
VARINT, LONG, SIZED, BEGINS, ENDS, SHORT = range(6)
FEW = 8
_TAG_BYTES, _VARINT_BYTES, _GROUPS_MAX = 5, 10, 100
_TAG_MAX, _WORD = 0xFFFFFFFF, (1 << 64) - 1
_Piece = tuple[Places, Places, Places, Places]


class MalformedError(ValueError):
    """The message of this row is none, and why."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row
        self.why = why


@dataclass(frozen=True, slots=True)
class Tokens:
    """Occurrences of one field, in the order of their bytes. `values`: of a varint its bits, of
    others where they begin; `ends`: where they end."""

    rows: Places
    values: Places
    ends: Places


def tokens(data: Bytes, starts: Places, stops: Places) -> dict[tuple[int, int], Tokens]:
    """The fields of messages that lie one behind the other, by number and wire type. `data` ends in
    PADDING zeros. Raises MalformedError."""
    found: dict[int, list[_Piece]] = {}
    rows, at = np.flatnonzero(starts < stops), starts.copy()
    while len(rows) > FEW:
        places, stop = at[rows], stops[rows]
        tags, begin = varints(data, places, stop, rows, _TAG_BYTES)
        if (bad := (tags < 8) | (tags > _TAG_MAX)).any():
            raise MalformedError(int(rows[bad][0]), "a field of it has no number")
        values, ends = _read(data, tags, begin, stop, rows)
        for tag, some in _by_tag(tags):
            found.setdefault(tag, []).append((places[some], rows[some], values[some], ends[some]))
        at[rows] = ends
        rows = rows[ends < stop]
    for row in rows.tolist():
        for tag, piece in _alone(data, int(at[row]), int(stops[row]), row).items():
            found.setdefault(tag, []).append(piece)
    return {(tag >> 3, tag & 7): _joined(pieces) for tag, pieces in found.items() if tag & 7 != BEGINS}


def varints(data: Bytes, at: Places, stop: Places, rows: Places, most: int = _VARINT_BYTES) -> tuple[Places, Places]:
    """(bits, places behind) of a number of at most `most` bytes at each place. Raises
    MalformedError."""
    bits, after = np.zeros(len(at), np.uint64), at.copy()
    going = np.arange(len(at))
    for count in range(most):
        byte = data[at[going] + count]
        bits[going] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * count)
        after[going] += 1
        going = going[byte >= 0x80]
        if not len(going):
            break
    bad = np.union1d(going, np.flatnonzero(after > stop))
    if len(bad):
        raise MalformedError(int(rows[bad[0]]), "a number leaves it, or is too long")
    return bits.view(np.int64), after


def _by_tag(tags: Places) -> Iterator[tuple[int, slice | Places]]:
    if (tags == tags[0]).all():
        yield int(tags[0]), slice(None)
        return
    for tag in np.unique(tags).tolist():
        yield tag, np.flatnonzero(tags == tag)


def _joined(pieces: list[_Piece]) -> Tokens:
    places, rows, values, ends = (np.concatenate(each) for each in zip(*pieces, strict=True))
    order = np.argsort(places, kind="stable")
    return Tokens(rows[order], values[order], ends[order])


def _read(data: Bytes, tags: Places, begin: Places, stop: Places, rows: Places) -> tuple[Places, Places]:
    """(values, ends) of the fields behind their tags."""
    wires = tags & 7
    values, ends = begin.copy(), begin.copy()
    for wire in np.unique(wires).tolist():
        some = np.flatnonzero(wires == wire)
        if wire == VARINT:
            values[some], ends[some] = varints(data, begin[some], stop[some], rows[some])
        elif wire == SIZED:
            sizes, values[some] = varints(data, begin[some], stop[some], rows[some], _TAG_BYTES)
            ends[some] = values[some] + sizes
        elif wire in (LONG, SHORT):
            ends[some] += 8 if wire == LONG else 4
        elif wire == BEGINS:
            for each in some.tolist():
                one = _One(data, int(begin[each]), int(stop[each]), int(rows[each]))
                one.pass_group(int(tags[each]) >> 3)
                ends[each] = one.place
        else:
            raise MalformedError(int(rows[some[0]]), f"a field of it has the wire type {wire}")
    if (bad := ends > stop).any():
        raise MalformedError(int(rows[bad][0]), "a field leaves it")
    return values, ends


def _alone(data: Bytes, at: int, stop: int, row: int) -> dict[int, _Piece]:
    """What is left of one message, by tag."""
    found: dict[int, list[tuple[int, int, int, int]]] = {}
    for begin, tag, value, end in walked(data, at, stop, row):
        found.setdefault(tag, []).append((begin, row, value, end))
    return {tag: _piece(each) for tag, each in found.items()}


def walked(data: Bytes, at: int, stop: int, row: int) -> Iterator[tuple[int, int, int, int]]:
    """(where it begins, tag, value as in Tokens, where it ends) of each field of one message.
    Raises MalformedError."""
    one = _One(data, at, stop, row)
    while one.place < stop:
        begin = one.place
        tag = one.tag()
        value = one.field(tag)
        yield begin, tag, value, one.place


def _piece(found: list[tuple[int, int, int, int]]) -> _Piece:
    places, rows, values, ends = np.array(found, np.int64).T
    return places, rows, values, ends


class _One:
    """One message, read field by field."""

    def __init__(self, data: Bytes, at: int, stop: int, row: int) -> None:
        self._bytes = data[at:stop].tobytes()
        self._at, self._base, self._row = 0, at, row

    @property
    def place(self) -> int:
        """Where it stands."""
        return self._base + self._at

    def tag(self) -> int:
        """The next tag."""
        tag = self._varint(_TAG_BYTES)
        if not 8 <= tag <= _TAG_MAX:
            raise MalformedError(self._row, "a field of it has no number")
        return tag

    def field(self, tag: int) -> int:
        """Pass over what a tag tells of: its bits, or where it begins."""
        wire = tag & 7
        if wire == VARINT:
            bits = self._varint(_VARINT_BYTES) & _WORD
            return bits - (1 << 64) if bits >> 63 else bits
        size = self._varint(_TAG_BYTES) if wire == SIZED else 0
        value = self.place
        if wire == BEGINS:
            self.pass_group(tag >> 3)
        elif wire in (LONG, SHORT, SIZED):
            self._at += {LONG: 8, SHORT: 4, SIZED: size}[wire]
        else:
            raise MalformedError(self._row, f"a field of it has the wire type {wire}")
        if self._at > len(self._bytes):
            raise MalformedError(self._row, "a field leaves it")
        return value

    def pass_group(self, number: int) -> None:
        """Stand behind the group of this number, which has begun."""
        within = [number]
        while within:
            tag = self.tag()
            if tag & 7 == BEGINS:
                within.append(tag >> 3)
                if len(within) > _GROUPS_MAX:
                    raise MalformedError(self._row, "a group of it is deeper than a hundred")
            elif tag & 7 == ENDS:
                if within.pop() != tag >> 3:
                    raise MalformedError(self._row, "a group ends that has not begun")
            else:
                self.field(tag)

    def _varint(self, most: int) -> int:
        bits = 0
        for count in range(most):
            if self._at >= len(self._bytes):
                break
            byte = self._bytes[self._at]
            self._at += 1
            bits |= (byte & 0x7F) << (7 * count)
            if byte < 0x80:
                return bits
        raise MalformedError(self._row, "a number leaves it, or is too long")
