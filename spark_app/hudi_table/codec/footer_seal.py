"""A check sum within a Parquet footer: Parquet has one for pages alone, and statistics or keys that
differ by a bit lose rows.

Facts (the Parquet format): a file ends with the footer, its length in 4 bytes, little-endian, and
`PAR1`; keys and values stand in it as compact Thrift strings, a value of 8 bytes behind the bytes
0x18 0x08. Readers pass over keys that they do not know.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from hudi_table.model.timeline.seals import KEY

PAIR = {KEY: "0" * 8}
"""The pair in a footer that is to be sealed."""
_PLACE = KEY.encode() + b"\x18\x08"
_ZEROS = b"0" * 8
_END = 8
_FIRST_BYTES = 64 << 10


def sealed_end(end: bytes) -> bytes:
    """The last bytes of a file, its footer among them, with the check sum of the footer in place of
    its zeros."""
    start = len(end) - footer_bytes(end)
    place = end.rfind(_PLACE + _ZEROS, start)
    if place < 0:
        return end
    place += len(_PLACE)
    return end[:place] + f"{crc32(end[start:]):08x}".encode() + end[place + len(_ZEROS) :]


def read_end(source: Any) -> bytes:
    """The footer, its length and the magic, of a seekable binary file; all of a file that is too
    short to have them.

    Raises ValueError if its check sum is wrong.
    """
    source.seek(0, 2)
    size = source.tell()
    source.seek(max(0, size - _FIRST_BYTES))
    data = bytes(source.read(min(size, _FIRST_BYTES)))
    wanted = footer_bytes(data)
    if wanted > size or len(data) < _END:
        return data
    if wanted > len(data):
        source.seek(size - wanted)
        data = bytes(source.read(wanted - len(data))) + data
    data = data[len(data) - wanted :]
    place = data.rfind(_PLACE)
    if place >= 0:
        place += len(_PLACE)
        stored_sum = data[place : place + len(_ZEROS)]
        if f"{crc32(data[:place] + _ZEROS + data[place + len(_ZEROS) :]):08x}".encode() != stored_sum:
            raise ValueError("the check sum of its footer is wrong: bytes of it have changed since it was written")
    return data


def footer_bytes(end: bytes) -> int:
    """Of the footer, its length and the magic."""
    return int.from_bytes(end[-_END : -_END + 4], "little") + _END
