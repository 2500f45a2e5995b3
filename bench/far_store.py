"""A store as far away as one wishes: a proxy in a process of its own, which keeps every request
waiting and notes when it came and went.

It serves at most `CONNECTIONS` requests at once. The longest chain of requests one after the other
is counted by their times: one begins after another has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.support.http_bytes import chunks, content_length
from tests.support.s3 import S3Server
from tests.support.versitygw import running_versitygw

CONNECTIONS = 64
_HEAD_BYTES_MAX = 1 << 16
_EXPECT = re.compile(rb"(?i)expect: *100-continue\r\n")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: when it came, and when its answer had gone, in seconds."""

    begun: float
    ended: float
    line: str


def in_sequence(requests: list[Sent]) -> int:
    """The longest chain of requests of which each begins after the one before has ended."""
    count, free = 0, 0.0
    for request in sorted(requests, key=lambda one: one.ended):
        if request.begun >= free:
            count, free = count + 1, request.ended
    return count


@dataclass(frozen=True, slots=True)
class FarStore:
    """The server itself, `near`; the same by way of the proxy, `far`."""

    near: S3Server
    far: S3Server
    _control: Connection

    def wait(self, seconds: float) -> None:
        """From now on each request waits so long."""
        self._control.send(seconds)
        self._control.recv()

    def taken(self) -> list[Sent]:
        """The requests since the last call."""
        self._control.send(None)
        found: list[Sent] = self._control.recv()
        return found


@contextlib.contextmanager
def running_far_store(folder: Path) -> Iterator[FarStore]:
    """A server of `folder` and a proxy before it, gone at the end."""
    with running_versitygw(folder) as near:
        ours, theirs = multiprocessing.Pipe()
        port = int(near.endpoint.rpartition(":")[2])
        process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, port), daemon=True)
        process.start()
        try:
            far = replace(near, endpoint=f"http://127.0.0.1:{ours.recv()}")
            yield FarStore(near, far, ours)
        finally:
            process.terminate()
            process.join()


def _serve(control: Connection, port: int) -> None:
    asyncio.run(_Proxy(control, port).serve())


class _Proxy:
    def __init__(self, control: Connection, port: int) -> None:
        self._control, self._port = control, port
        self._seconds = 0.0
        self._sent: list[Sent] = []
        self._slots = asyncio.Semaphore(CONNECTIONS)

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=_HEAD_BYTES_MAX)
        asyncio.get_running_loop().add_reader(self._control.fileno(), self._asked)
        self._control.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    def _asked(self) -> None:
        seconds = self._control.recv()
        if seconds is None:
            self._control.send(self._sent)
            self._sent = []
        else:
            self._seconds = seconds
            self._control.send(None)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, with one of its own to the server."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port, limit=_HEAD_BYTES_MAX)
            try:
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    if _EXPECT.search(head):
                        # As S3A asks before each upload. No time is taken for the answer.
                        head = _EXPECT.sub(b"", head)
                        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    body = await reader.readexactly(content_length(head) or 0)
                    async with self._slots:
                        await self._answer(head, body, far_reader, far_writer, writer)
            finally:
                far_writer.close()
                writer.close()

    async def _answer(
        self, head: bytes, body: bytes, far: asyncio.StreamReader, to: asyncio.StreamWriter, back: Any
    ) -> None:
        begun = asyncio.get_running_loop().time()
        await asyncio.sleep(self._seconds)
        to.write(head + body)
        await to.drain()
        answer = await far.readuntil(b"\r\n\r\n")
        back.write(answer)
        line = head.partition(b"\r\n")[0].decode("latin-1")
        if not (line.startswith("HEAD ") or answer[9:12] in (b"204", b"304")):
            length = content_length(answer)
            back.write(await chunks(far) if length is None else await far.readexactly(length))
        await back.drain()
        self._sent.append(Sent(begun, asyncio.get_running_loop().time(), line))
