"""A proxy before an S3 server that does one fault at one request, told from outside, or faults at
random.

It counts the requests that change something. At the one that it was told it kills or stops the
process that sends, loses the answer, keeps the request until a repetition has passed, sends it
twice, refuses a number of requests, or cuts the connection. It runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import random
import re
import signal
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection

from tests.support.http_bytes import chunks, content_length
from tests.support.s3 import S3Server

_HEAD_BYTES_MAX = 1 << 16
_CHANGES = (b"PUT ", b"POST ", b"DELETE ")
_SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
_REFUSAL = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: "


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the changing request number `at`, never at 0.

    `group`: the process group that is killed or stopped. `seconds`: how long a late request is
    kept. `count`: how many requests a burst refuses. `under`: what a request names that counts, so
    that a process which is started meanwhile and writes elsewhere does not.
    """

    kind: str
    at: int
    group: int = 0
    seconds: float = 0.0
    count: int = 0
    under: str = ""


@dataclass(frozen=True, slots=True)
class Noise:
    """One request of so many meets a fault, by chance: a change is lost with its answer, late,
    doubled, refused or cut off, any other request refused or cut off.

    `seconds`: how long a late request is kept at the most.
    """

    one_in: int
    seconds: float
    seed: int

    def drawn(self, chance: random.Random, *, changes: bool) -> Fault | None:
        """The fault of the next request, or none."""
        if chance.randrange(self.one_in):
            return None
        kinds = ("lost answer", "late", "doubled", "refused", "reset") if changes else ("refused", "reset")
        return Fault(chance.choice(kinds), 0, seconds=chance.uniform(0.1, self.seconds))


@dataclass(frozen=True, slots=True)
class Passed:
    """Since the last fault was told: changing requests, the request at which it happened first, and
    how often."""

    changes: int
    fired: str
    times: int = 0


@dataclass(frozen=True, slots=True)
class FaultyStore:
    """The server itself, `near`; the same by way of the proxy, `far`."""

    near: S3Server
    far: S3Server
    _control: Connection

    def arm(self, fault: Fault | Noise | None) -> Passed:
        """From now on this fault, or such ones, or none; what has passed until now."""
        self._control.send(("arm", fault))
        passed: Passed = self._control.recv()
        return passed

    def look(self) -> Passed:
        """What has passed since a fault was told, which stays."""
        self._control.send(("look", None))
        passed: Passed = self._control.recv()
        return passed


@contextlib.contextmanager
def before(near: S3Server) -> Iterator[FaultyStore]:
    """A proxy before a server, gone at the end."""
    ours, theirs = multiprocessing.Pipe()
    port = int(near.endpoint.rpartition(":")[2])
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, port), daemon=True)
    process.start()
    try:
        yield FaultyStore(near, replace(near, endpoint=f"http://127.0.0.1:{ours.recv()}"), ours)
    finally:
        process.terminate()
        process.join()


def _serve(control: Connection, port: int) -> None:
    asyncio.run(_Proxy(control, port).serve())


@dataclass
class _Proxy:
    control: Connection
    port: int
    fault: Fault | None = None
    noise: Noise | None = None
    chance: random.Random = field(default_factory=random.Random)
    changes: int = 0
    fired: str = ""
    times: int = 0
    refused: int = 0
    late: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=_HEAD_BYTES_MAX)
        asyncio.get_running_loop().add_reader(self.control.fileno(), self._armed)
        self.control.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    def _armed(self) -> None:
        what, fault = self.control.recv()
        self.control.send(Passed(self.changes, self.fired, self.times))
        if what == "look":
            return
        self.noise = fault if isinstance(fault, Noise) else None
        self.fault = None if self.noise else fault
        self.changes, self.fired, self.times, self.refused = 0, "", 0, 0
        if self.noise:
            self.chance.seed(self.noise.seed)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            try:
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    if b"100-continue" in head.lower():
                        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                        head = re.sub(rb"(?i)\r\nexpect:[^\r]*", b"", head)
                    request = head + await reader.readexactly(content_length(head) or 0)
                    if not await self._answered(request, writer):
                        return
            finally:
                writer.close()

    async def _answered(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        fault = self.fault
        counts = fault is None or _names(request, fault.under)
        changes = counts and request.startswith(_CHANGES)
        self.changes += changes
        if self.noise and (drawn := self.noise.drawn(self.chance, changes=changes)):
            self._note(request)
            return await self._faulty(drawn, request, writer)
        if fault is not None and fault.kind == "burst" and counts and self._in_burst(fault, request):
            return await self._refuse(request, writer)
        hit = fault is not None and changes and not self.fired and self.changes == fault.at
        if fault is not None and hit and fault.kind != "burst":
            self._note(request)
            return await self._faulty(fault, request, writer)
        writer.write(await self._passed(request))
        await writer.drain()
        return True

    async def _refuse(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(_REFUSAL + b"%d\r\n\r\n" % len(_SLOW_DOWN))
        if not request.startswith(b"HEAD "):
            writer.write(_SLOW_DOWN)
        await writer.drain()
        return True

    def _in_burst(self, fault: Fault, request: bytes) -> bool:
        if self.changes < fault.at or self.refused >= fault.count:
            return False
        self._note(request)
        self.refused += 1
        return True

    async def _faulty(self, fault: Fault, request: bytes, writer: asyncio.StreamWriter) -> bool:
        match fault.kind:
            case "kill before":
                os.killpg(fault.group, signal.SIGKILL)
            case "kill after":
                await self._passed(request)
                os.killpg(fault.group, signal.SIGKILL)
            case "stop":
                os.killpg(fault.group, signal.SIGSTOP)
                writer.write(await self._passed(request))
                return True
            case "lost answer":
                await self._passed(request)
            case "late":
                task = asyncio.create_task(self._send_late(request, fault.seconds))
                self.late.add(task)
                task.add_done_callback(self.late.discard)
            case "doubled":
                await self._passed(request)
                writer.write(await self._passed(request))
                await writer.drain()
                return True
            case "refused":
                return await self._refuse(request, writer)
            case "reset":
                # Closed at once with a reset instead of an end.
                raw: socket.socket = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
        return False

    async def _send_late(self, request: bytes, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._passed(request)

    def _note(self, request: bytes) -> None:
        self.times += 1
        self.fired = self.fired or request.partition(b" HTTP")[0].decode("latin-1")

    async def _passed(self, request: bytes) -> bytes:
        """The server's answer. Each request has a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=_HEAD_BYTES_MAX)
        try:
            writer.write(request)
            await writer.drain()
            answer = await reader.readuntil(b"\r\n\r\n")
            if request.startswith(b"HEAD ") or answer[9:12] in (b"204", b"304"):
                return answer
            length = content_length(answer)
            return answer + (await chunks(reader) if length is None else await reader.readexactly(length))
        finally:
            writer.close()


def _names(request: bytes, under: str) -> bool:
    """Whether it names that: a key in its path, in its body, or what a listing asks for."""
    return under.encode() in request or under.replace("/", "%2F").encode() in request
