"""How the data of a block is compressed; the number of a codec stands in the trailer.

Facts: GZ is a gzip stream, ZSTD a frame, BZIP2 a stream; SNAPPY and LZ4 come in Hadoop's frames:
the length of the data, then pieces, each after its compressed length, all as big-endian ints. LZO
has no decoder here.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from typing import Final

import pyarrow as pa

from hudi_table.codec.hfile.protobuf import MalformedError

GZ: Final = 1
NONE: Final = 2
CODECS: Final = {"LZO": 0, "GZ": GZ, "NONE": NONE, "SNAPPY": 3, "LZ4": 4, "BZIP2": 5, "ZSTD": 6}
_NAMES: Final = {number: name for name, number in CODECS.items()}
_GZIP_HEAD: Final = b"\x1f\x8b\x08"
_GZIP_EXTRA_FLAG: Final = 4
_INT = struct.Struct(">I")
_LEVEL: Final = 4


def codec_name(number: int) -> str:
    """The codec's name, or its number as text if it is unknown."""
    return _NAMES.get(number, str(number))


def can_inflate(number: int) -> bool:
    """Whether `inflate` knows the codec."""
    return codec_name(number) in ("GZ", "NONE", "SNAPPY", "LZ4", "BZIP2", "ZSTD")


def inflate(data: bytes, codec: int, size: int) -> bytes:
    """The `size` bytes that `data` holds. Never makes more than `size` bytes. Raises
    MalformedError."""
    try:
        found = _inflated(data, codec, size)
    except (zlib.error, OSError, ValueError, EOFError, struct.error) as error:
        raise MalformedError(f"a block is no {codec_name(codec)} data: {error}") from error
    if len(found) != size:
        raise MalformedError(f"a block holds {len(found)} bytes where its head says {size}")
    return found


def gzip(data: bytes, *, padding: int = 0) -> bytes:
    """`data` as a gzip stream whose head has an extra field of `padding` bytes (at least 6), or
    none."""
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    extra = b""
    if padding:
        field = b"HP" + struct.pack("<H", padding - 6) + bytes(padding - 6)
        extra = struct.pack("<H", len(field)) + field
    flags = _GZIP_EXTRA_FLAG if padding else 0
    head = _GZIP_HEAD + bytes([flags, 0, 0, 0, 0, 0, 0]) + extra
    return head + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def _inflated(data: bytes, codec: int, size: int) -> bytes:
    if codec == NONE:
        return data
    if codec == GZ:
        # One byte more than expected, so that longer data shows.
        return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS).decompress(data, size + 1)
    if codec == CODECS["BZIP2"]:
        return bz2.BZ2Decompressor().decompress(data, max_length=size + 1)
    if codec == CODECS["ZSTD"]:
        return bytes(pa.Codec("zstd").decompress(data, size)) if size else b""
    return _framed(data, pa.Codec("snappy" if codec == CODECS["SNAPPY"] else "lz4_raw"), size)


def _framed(data: bytes, codec: pa.Codec, size: int) -> bytes:
    parts: list[bytes] = []
    at, total = 0, 0
    while total < size:
        (frame,) = _INT.unpack_from(data, at)
        at += 4
        if frame == 0 or frame > size - total:
            raise ValueError(f"a frame of {frame} bytes in a block of {size}")
        done = 0
        while done < frame:
            (length,) = _INT.unpack_from(data, at)
            piece = data[at + 4 : at + 4 + length]
            at += 4 + length
            found = _piece(piece, codec, frame - done)
            parts.append(found)
            done += len(found)
        total += done
    return b"".join(parts)


def _piece(piece: bytes, codec: pa.Codec, room: int) -> bytes:
    size = _snappy_size(piece) if codec.name == "snappy" else room
    if not 0 < size <= room:
        raise ValueError(f"a piece of {size} bytes where {room} are left")
    return bytes(codec.decompress(piece, size))


def _snappy_size(piece: bytes) -> int:
    size = 0
    for place, byte in enumerate(piece[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return size
    raise ValueError("a piece without a length")
