"""The trailer, the last 4,096 bytes of an HFile, and its file info: small maps in protocol buffers.

Facts (measured on Hudi 0.15.0 and 1.1.1): magic `TRABLK"$`, a message after its length, zeros, and
in the last four bytes the minor version (3 by HBase, 0 by Hudi 1.x) and the major version 3. File
info: `PBUF`, then a message of pairs after its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.codec.hfile import protobuf
from hudi_table.codec.hfile.protobuf import MalformedError

TRAILER_BYTES = 4096
COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_MAGIC = b'TRABLK"$'
_INFO_MAGIC = b"PBUF"
_MAJOR = 3
_VERSION = bytes([_MAJOR, 0, 0, _MAJOR])
_LEVELS_MAX = 16
_FIELDS = {
    "info_offset": 1,
    "load_offset": 2,
    "index_bytes": 3,
    "uncompressed_bytes": 4,
    "index_count": 5,
    "meta_count": 6,
    "entries": 7,
    "levels": 8,
    "first_data_offset": 9,
    "last_data_offset": 10,
    "codec": 12,
}
_COMPARATOR_FIELD = 11
_NEEDED = ("info_offset", "load_offset", "index_count", "entries")
"""Every writer tells them, also where they are 0: what is missing is damage, and would make an
empty file of a full one."""


@dataclass(frozen=True, slots=True)
class Trailer:
    """Offsets are bytes from the start of the file; `index_count` and `meta_count` are entries of
    the two root indexes."""

    info_offset: int = 0
    load_offset: int = 0
    index_bytes: int = 0
    uncompressed_bytes: int = 0
    index_count: int = 0
    meta_count: int = 0
    entries: int = 0
    levels: int = 1
    first_data_offset: int = 0
    last_data_offset: int = 0
    codec: int = 2


def parse_trailer(data: bytes, size: int) -> Trailer:
    """The trailer in the last bytes of a file of `size` bytes. Raises MalformedError."""
    if len(data) != TRAILER_BYTES or data[: len(_MAGIC)] != _MAGIC:
        raise MalformedError("it does not end with a trailer")
    major = int.from_bytes(data[-3:], "big")
    if major != _MAJOR:
        raise MalformedError(f"its version is {major}, not {_MAJOR}")
    body, after = protobuf.delimited(data[: TRAILER_BYTES - 4], len(_MAGIC))
    fields_read = dict(protobuf.fields_of(body))
    if any(data[after : TRAILER_BYTES - 4]) or not all(_FIELDS[name] in fields_read for name in _NEEDED):
        raise MalformedError("its trailer is not whole")
    numbers = {}
    for name, number in _FIELDS.items():
        value = fields_read.get(number, 0)
        if not isinstance(value, int):
            raise MalformedError(f"field {name} of its trailer is no number")
        numbers[name] = value
    found = Trailer(**numbers)
    if max(found.info_offset, found.load_offset) > size - TRAILER_BYTES or found.levels > _LEVELS_MAX:
        raise MalformedError("its trailer points beyond the file")
    if bool(found.entries) != bool(found.index_count):
        raise MalformedError(f"its trailer counts {found.entries} entries in {found.index_count} blocks")
    return found


def trailer_bytes(trailer: Trailer) -> bytes:
    """The last bytes of a file."""
    fields: list[protobuf.Field] = [(number, getattr(trailer, name)) for name, number in _FIELDS.items()]
    fields.append((_COMPARATOR_FIELD, COMPARATOR.encode()))
    body = _MAGIC + protobuf.with_length(protobuf.message(sorted(fields, key=lambda field: field[0])))
    return body.ljust(TRAILER_BYTES - len(_VERSION), b"\0") + _VERSION


def parse_info(data: bytes) -> dict[str, bytes]:
    """The pairs of a file info block. Raises MalformedError."""
    if data[: len(_INFO_MAGIC)] != _INFO_MAGIC:
        raise MalformedError("its file info is not in protocol buffers")
    found = {}
    for _, pair in protobuf.fields_of(protobuf.delimited(data, len(_INFO_MAGIC))[0]):
        if not isinstance(pair, bytes):
            raise MalformedError("an entry of its file info is no pair")
        both = dict(protobuf.fields_of(pair))
        name, value = both.get(1, b""), both.get(2, b"")
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            raise MalformedError("an entry of its file info holds no bytes")
        found[name.decode("utf-8", "replace")] = value
    return found


def info_bytes(info: Mapping[str, bytes]) -> bytes:
    """A file info block, in the order of the names as HBase writes it."""
    pairs = sorted((name.encode(), value) for name, value in info.items())
    body = protobuf.message((1, protobuf.message([(1, name), (2, value)])) for name, value in pairs)
    return _INFO_MAGIC + protobuf.with_length(body)
