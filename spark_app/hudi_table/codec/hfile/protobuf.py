"""The little of protocol buffers that an HFile's trailer and file info need: numbers and byte
strings by field.

Fact: a field is a number `field << 3 | wire type` and its value; wire type 0 is a variable-length
number, 2 a length and bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

Field = tuple[int, int | bytes]
_VARINT_BYTES = 10


class MalformedError(ValueError):
    """The bytes are no HFile; the message says what is wrong with them."""


def fields_of(message: bytes) -> list[Field]:
    """(field, value) in their order. Raises MalformedError."""
    at, found = 0, []
    while at < len(message):
        tag, at = _number(message, at)
        value, at = _value(message, at, tag & 7)
        found.append((tag >> 3, value))
    return found


def delimited(data: bytes, at: int) -> tuple[bytes, int]:
    """The message at `at`, which its length precedes, and the place after it. Raises
    MalformedError."""
    length, at = _number(data, at)
    if at + length > len(data):
        raise MalformedError(f"a message of {length} bytes leaves its {len(data)} bytes")
    return data[at : at + length], at + length


def message(fields: Iterable[Field]) -> bytes:
    """The message that has these fields."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [_varint(number << 3), _varint(value)]
        else:
            parts += [_varint(number << 3 | 2), _varint(len(value)), value]
    return b"".join(parts)


def with_length(body: bytes) -> bytes:
    """The message after its length."""
    return _varint(len(body)) + body


def _value(data: bytes, at: int, wire: int) -> tuple[int | bytes, int]:
    if wire == 0:
        return _number(data, at)
    if wire in (1, 5):
        end = at + (8 if wire == 1 else 4)
    elif wire == 2:
        length, at = _number(data, at)
        end = at + length
    else:
        raise MalformedError(f"a field has the unknown wire type {wire}")
    if end > len(data):
        raise MalformedError("a field leaves its message")
    return data[at:end], end


def _number(data: bytes, at: int) -> tuple[int, int]:
    result = 0
    for place in range(_VARINT_BYTES):
        if at + place >= len(data):
            raise MalformedError("a number leaves its message")
        byte = data[at + place]
        result |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at + place + 1
    raise MalformedError(f"a number has more than {_VARINT_BYTES} bytes")


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
