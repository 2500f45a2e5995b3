"""Bytes that somebody made to do harm, and a process of little memory and time that reads them:
`python -m tests.support.hostile`."""

from __future__ import annotations

import base64
import functools
import io
import json
import resource
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.codec.archive_entries import read_entries
from hudi_table.codec.avro.container import read_container
from hudi_table.codec.avro.schema import avro_to_arrow
from hudi_table.codec.bloom.filters import DYNAMIC, SIMPLE, BloomFilter
from hudi_table.codec.hfile import HFile, blocks, entries, index, trailer
from hudi_table.codec.hfile.compression import GZ, NONE, gzip
from hudi_table.codec.log.blocks import INSTANT_TIME, MAGIC, SCHEMA, BlockType, encode_block, scan_blocks
from hudi_table.codec.log.rows import read_deletes, read_rows
from hudi_table.errors import HudiError
from hudi_table.model.table.java_properties import parse_properties
from hudi_table.model.timeline.commits import CommitMetadata
from tests.support.api_server import ROOT

MEMORY_BYTES, CPU_SECONDS = 256 << 20, 5
LONG = 1 << 40
CHAIN = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}
NOTHING = {"type": "record", "name": "R", "fields": []}
NULLS = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}
EMPTIES = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": {
    "type": "record", "name": "E", "fields": []}}}]}  # fmt: skip
BYTES = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "bytes"}]}
HUGE = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "fixed", "name": "f", "size": LONG}}]}
DEEP = b'{"type":' * 100_000


def varint(number: int) -> bytes:
    """As Avro writes a long."""
    rest, out = (number << 1) ^ (number >> 63), b""
    while rest > 127:
        out, rest = out + bytes([rest & 127 | 128]), rest >> 7
    return out + bytes([rest])


def container(schema: Any, body: bytes, *, codec: bytes = b"null", count: int = 1) -> bytes:
    """An Avro object container of one block, which tells of `count` records."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    told = b"".join(varint(len(part)) + part for part in (b"avro.schema", text, b"avro.codec", codec))
    sync = bytes(16)
    return b"Obj\x01" + varint(2) + told + b"\0" + sync + varint(count) + varint(len(body)) + body + sync


def block(schema: Any, *records: bytes, count: int | None = None) -> bytes:
    """A log block of Avro records."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    content = struct.pack(">ii", 3, len(records) if count is None else count)
    content += b"".join(struct.pack(">i", len(record)) + record for record in records)
    return encode_block(BlockType.AVRO, {INSTANT_TIME: "1", SCHEMA: text}, content)


def rows(data: bytes) -> Any:
    source = io.BytesIO(data)
    return [read_rows(source, each).num_rows for each in scan_blocks(source, path="a.log")]


def deletes(length: int, body: bytes) -> Any:
    content = struct.pack(">ii", 3, length) + body
    source = io.BytesIO(encode_block(BlockType.DELETE, {INSTANT_TIME: "1"}, content))
    return [len(read_deletes(source, each).keys) for each in scan_blocks(source, path="a.log")]


def doubling() -> str:
    """Forty names, each of them twice the one before: two to the forty fields."""
    fields: list[Any] = [
        {"name": "f0", "type": {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}}
    ]
    for n in range(1, 40):
        twice = [{"name": side, "type": f"r{n - 1}"} for side in ("a", "b")]
        fields.append({"name": f"f{n}", "type": {"type": "record", "name": f"r{n}", "fields": twice}})
    return json.dumps({"type": "record", "name": "R", "fields": fields})


@functools.cache
def bomb(mebibytes: int = 64) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)) + packer.flush()


def bloom(kind: str, *head: int) -> Any:
    body = struct.pack(">iibi", *head[:4]) + struct.pack(f">{len(head) - 4}i", *head[4:]) + bytes(32)
    return BloomFilter.parse(base64.b64encode(body), kind)


def packed(inflated: int) -> blocks.Stored:
    """A gzip stream of more than memory holds, whose head tells of `inflated` bytes."""
    head, body = gzip(b"")[:10], bomb(320)
    return blocks.Stored(head + body + bytes(8), inflated)


def hfile(
    *lower: tuple[bytes, blocks.Stored], root: blocks.Stored, count: int = 1, codec: int = NONE, levels: int = 1
) -> Any:
    """Read an HFile of these blocks, with this index above them, from end to end."""
    empty = blocks.Stored(gzip(b"") if codec == GZ else b"", 0)
    info = trailer.info_bytes({})
    told = blocks.Stored(gzip(info) if codec == GZ else info, len(info))
    parts = [*lower, (blocks.ROOT_INDEX, root), (blocks.ROOT_INDEX, empty), (blocks.FILE_INFO, told)]
    data = [blocks.finished(magic, [stored], [-1])[0] for magic, stored in parts]
    sizes = [len(part) for part in data]
    tail = trailer.Trailer(
        info_offset=sum(sizes[:-1]),
        load_offset=sum(sizes[:-3]),
        index_count=count,
        entries=1,
        levels=levels,
        codec=codec,
    )
    whole = b"".join(data) + trailer.trailer_bytes(tail)
    return HFile.open(pa.BufferReader(whole), path="x").read().num_rows


def to_itself() -> Any:
    """Sixteen levels of index, each of which is one block that names itself a thousand times."""
    keys = [b"%04d" % number for number in range(1000)]

    def level(size: int) -> bytes:
        found = [struct.pack(">qi", 0, size) + entries.key_of(key) for key in keys]
        places = [sum(map(len, found[:number])) for number in range(len(found) + 1)]
        return struct.pack(f">i{len(places)}i", len(found), *places) + b"".join(found)

    size = blocks.Stored(level(0), 0).whole
    content = level(size)
    root = index.root_bytes([index.Entry(key, 0, size) for key in keys])
    return hfile(
        (blocks.INNER_INDEX, blocks.Stored(content, len(content))),
        root=blocks.Stored(root, len(root)),
        count=len(keys),
        levels=16,
    )


def many_times_a_block() -> Any:
    """A hundred thousand entries of the index that name one block of data, which is packed."""
    data = packed(64 << 20)
    root = index.root_bytes([index.Entry(b"%06d" % number, 0, data.whole) for number in range(100_000)])
    return hfile((blocks.DATA, data), root=blocks.Stored(gzip(root), len(root)), count=100_000, codec=GZ)


def packed_data(inflated: int) -> Any:
    data = packed(inflated)
    root = index.root_bytes([index.Entry(b"a", 0, data.whole)])
    return hfile((blocks.DATA, data), root=blocks.Stored(gzip(root), len(root)), codec=GZ)


CASES: dict[str, Callable[[], Any]] = {
    "a container of a record that holds itself": lambda: read_container(container(CHAIN, b"\x02" * 2_000_000)),
    "a container of many nothings": lambda: read_container(container(NULLS, varint(LONG) + b"\0")),
    "a container of many empty records": lambda: read_container(container(EMPTIES, varint(LONG) + b"\0")),
    "a container that tells of many records": lambda: read_container(container(NOTHING, b"", count=LONG)),
    "a container that tells of more records than bytes": lambda: read_container(container(BYTES, b"\0", count=LONG)),
    "a container that is packed": lambda: read_container(container(BYTES, bomb(), codec=b"deflate")),
    "a container of a long value": lambda: read_container(container(BYTES, varint(LONG))),
    "a container of a long fixed": lambda: read_container(container(HUGE, b"ab")),
    "a container of a deep schema": lambda: read_container(container(DEEP, b"")),
    "an archive of a record that holds itself": lambda: list(read_entries(block(CHAIN, b"\x02" * 2_000_000), path="x")),
    "an archive of many nothings": lambda: list(read_entries(block(NULLS, varint(LONG) + b"\0"), path="x")),
    "an archive of a deep schema": lambda: list(read_entries(block(DEEP.decode(), b""), path="x")),
    "a log of a record that holds itself": lambda: rows(block(CHAIN, b"\x02" * 2_000_000)),
    "a log of many nothings": lambda: rows(block(NULLS, varint(LONG) + b"\0")),
    "a log of many empty records": lambda: rows(block(EMPTIES, varint(LONG) + b"\0")),
    "a log that tells of many records": lambda: rows(block(BYTES, b"\0", count=2**31 - 1)),
    "a log of no record and a long fixed": lambda: rows(block(HUGE)),
    "a log of a deep schema": lambda: rows(block(DEEP.decode())),
    "a log of names that double": lambda: rows(block(doubling(), b"\0")),
    "a list of many deletes": lambda: deletes(16, varint(LONG) + bytes(10)),
    "a list of deletes of no length": lambda: deletes(-5, varint(-LONG) + bytes(10)),
    "a schema of names that double": lambda: avro_to_arrow(doubling()),
    "a filter of many bits": lambda: bloom(SIMPLE, -1, 1, 1, 2**31 - 1),
    "a filter of many rows": lambda: bloom(DYNAMIC, -1, 1, 1, 64, 1, 1, 2**31 - 1),
    "a filter of many hashes": lambda: bloom(SIMPLE, -1, 2**31 - 1, 1, 256),
    "an HFile whose data is packed": lambda: packed_data(1 << 30),
    "an HFile whose data is packed and tells of little": lambda: packed_data(1 << 10),
    "an HFile whose index is packed": lambda: hfile(root=packed(1 << 30), codec=GZ),
    "an HFile that tells of many entries of its index": lambda: hfile(root=blocks.Stored(b"", 0), count=LONG),
    "an HFile whose index holds itself": to_itself,
    "an HFile whose index names a block many times": many_times_a_block,
    "a commit that is deep": lambda: CommitMetadata.from_json(b'{"a":' * 100_000),
}
"""Each is refused. Before it was, it ended the process, or took memory or time without bound."""
READ: dict[str, Callable[[], Any]] = {
    "a log of magics": lambda: len(scan_blocks(io.BytesIO(MAGIC * 100_000))),
    "properties of backslashes": lambda: len(parse_properties("\\" * 100_000)),
    "properties of spaces": lambda: len(parse_properties(" " * 100_000 + "x" + " " * 100_000)),
    "properties that go on": lambda: len(parse_properties("x\\\n" * 100_000)),
}
"""Each is read, in bounded time."""


def outcomes() -> dict[str, str]:
    """What reading each of them ends with, in one process of little memory; what it did not survive
    is missing."""
    command = [sys.executable, "-m", "tests.support.hostile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return {case: end for case, _, end in (line.partition("\t") for line in done.stdout.splitlines())}


def main() -> None:
    """Read all of them within the limits. More time than that for all of them ends the process."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    for case, work in (CASES | READ).items():
        began = time.process_time()
        limit = int(began) + 2 * CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        try:
            end = f"read {work()}"
        except (HudiError, ValueError) as error:
            end = f"refused by {type(error).__name__}"
        except MemoryError:
            end = "took too much memory"
        if time.process_time() - began > CPU_SECONDS:
            end = "took too long"
        print(f"{case}\t{end}", flush=True)


if __name__ == "__main__":
    main()
