"""One POST to a receiver that is allowed: to an address that was judged, with a limit for all of
it, no redirect, no proxy, and no byte of the answer but its status.

Of several addresses the first that answers is taken. Whom HTTPS trusts is said by OpenSSL's
`SSL_CERT_FILE` and `SSL_CERT_DIR`, else by the system.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from hudi_table.callbacks.receivers import PORTS, Address, Allowed, Target, addresses_of
from hudi_table.table.store.ports import Clock

SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """`delivered`: the receiver has it. Else `refused`: nobody was asked, for the host is not
    allowed; and `why`, which quotes nothing that was sent or came back."""

    delivered: bool
    why: str = ""
    refused: bool = False


def post(
    target: Target, body: bytes, headers: Mapping[str, str], *, allowed: Allowed, clock: Clock, seconds: float = SECONDS
) -> Answer:
    """Send a body and wait for the status of the answer: 2xx means that the receiver has it."""
    if not allowed.host(target.host):
        return Answer(False, f"host {target.host} is not allowed", refused=True)
    ends = clock.boot_seconds() + seconds
    try:
        addresses = addresses_of(target, seconds=seconds)
        judged = [each for each in addresses if allowed.address(each)]
        if not judged:
            said = (
                f"host {target.host} is at {addresses[0]}, an address of this machine or its link, which is not allowed"
            )
            return Answer(False, said, refused=True)
        status = _exchange(target, judged, body, headers, _Deadline(clock, ends))
    except TimeoutError:
        return Answer(False, f"no answer within {seconds:g} s")
    except ssl.SSLError as error:
        return Answer(False, f"TLS: {error.reason or type(error).__name__}")
    except (OSError, http.client.HTTPException) as error:
        return Answer(False, (error.strerror if isinstance(error, OSError) else None) or type(error).__name__)
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Answer(True)
    return Answer(False, f"the receiver answered {status}")


@dataclass(frozen=True, slots=True)
class _Deadline:
    clock: Clock
    ends: float

    def apply(self, connected: socket.socket) -> None:
        """Let the next call on the socket take no longer than what is left. Raises TimeoutError
        where nothing is."""
        left = self.ends - self.clock.boot_seconds()
        if left <= 0:
            raise TimeoutError
        connected.settimeout(left)


class _Answering(io.RawIOBase):
    """What the receiver sends, drop by drop perhaps: the deadline is for all of it."""

    def __init__(self, connected: socket.socket, deadline: _Deadline) -> None:
        self._connected, self._deadline = connected, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._deadline.apply(self._connected)
        return self._connected.recv_into(buffer)

    def makefile(self, *_: object, **__: object) -> io.BufferedReader:
        """As a response asks for what it reads from."""
        return io.BufferedReader(self)


def _connected(addresses: Sequence[Address], port: int, deadline: _Deadline) -> socket.socket:
    """To the first that answers: each has its part of the time that is left. Raises OSError of the
    last one."""
    problem = OSError("no address")
    for number, address in enumerate(addresses):
        left = (deadline.ends - deadline.clock.boot_seconds()) / (len(addresses) - number)
        try:
            return socket.create_connection((str(address), port), timeout=max(0.001, left))
        except OSError as error:
            problem = error
    raise problem


def _exchange(
    target: Target, addresses: Sequence[Address], body: bytes, headers: Mapping[str, str], deadline: _Deadline
) -> int:
    """The status of the answer. Raises OSError, HTTPException."""
    plain = _connected(addresses, target.port, deadline)
    connected = plain
    try:
        deadline.apply(plain)
        if target.scheme == "https":
            connected = ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)
        # It writes the request alone: the socket is connected already, and the answer is read with a deadline.
        request = http.client.HTTPConnection(target.host, target.port)
        request.default_port = PORTS[target.scheme]
        request.sock = connected
        deadline.apply(connected)
        request.request("POST", target.path, body, {**headers, "Connection": "close", "User-Agent": "hudi-operator"})
        response = http.client.HTTPResponse(_Answering(connected, deadline), method="POST")  # type: ignore[arg-type] # it asks for makefile alone
        response.begin()
        return response.status
    finally:
        connected.close()
        plain.close()
