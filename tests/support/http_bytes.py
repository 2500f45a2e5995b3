"""Bodies of HTTP as proxies pass them on."""

from __future__ import annotations

import asyncio


async def chunks(reader: asyncio.StreamReader) -> bytes:
    """A body in chunks, as it comes."""
    found = bytearray()
    while True:
        size = await reader.readuntil(b"\r\n")
        found += size + await reader.readexactly(int(size.split(b";")[0], 16) + 2)
        if int(size.split(b";")[0], 16) == 0:
            return bytes(found)


def content_length(head: bytes) -> int | None:
    """What a head says of the size of its body; None if it does not."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return None
