"""Check sums within what we write, at places that Hudi's readers pass over, by which a changed byte
is found.

Facts (measured on Hudi 0.15.0): commit metadata may hold keys that Hudi does not know, and an Avro
schema properties. A document that has no seal is another engine's, or of an earlier release, and is
taken as it is.
"""

from __future__ import annotations

import re
from zlib import crc32

KEY = "lakeops.crc32"
_SEAL = re.compile(rb',"lakeops\.crc32":"([0-9a-f]{8})"}$')
_HEADER_SEAL = re.compile(r',"lakeops\.crc32":"([0-9a-f]{8})([0-9a-f]{8})"}$')
_LAST_BYTES = 40  # where a seal is looked for: it has 28
_UNSEALED = "0" * 8


def sealed(document: bytes) -> bytes:
    """A JSON object with the check sum of all before it as its last key."""
    return document[:-1] + f',"{KEY}":"{crc32(document):08x}"}}'.encode()


def unsealed(document: bytes) -> bytes:
    """The document without its seal. Raises ValueError if it is not what was sealed."""
    match = _SEAL.search(document, max(0, len(document) - _LAST_BYTES))
    if match is None:
        return document
    inner = document[: match.start()] + b"}"
    if crc32(inner) != int(match[1], 16):
        raise ValueError("its check sum is wrong: bytes of it have changed since it was written")
    return inner


def with_header_seal(schema: str, header: int, content: int) -> str:
    """A schema, JSON of an object, with the check sums of the header that holds it (with zeros in
    their place) and of the content."""
    return f'{schema[:-1]},"{KEY}":"{header:08x}{content:08x}"}}'


def header_seal(schema: str) -> tuple[int, int] | None:
    """(check sum of the header, check sum of the content) of a schema that has them."""
    match = _HEADER_SEAL.search(schema)
    return None if match is None else (int(match[1], 16), int(match[2], 16))


def without_header_seal(schema: str) -> str:
    """The schema itself."""
    return _HEADER_SEAL.sub("}", schema)
