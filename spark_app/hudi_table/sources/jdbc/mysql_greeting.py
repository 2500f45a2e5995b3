"""The greeting with which MySQL and MariaDB begin: whether a server is there, and has TLS.

Why it is read (connectorx 0.4.6; tried): the driver goes on for 30 seconds where nobody listens,
and its `preferred` refuses a server without TLS. Where each byte lies: protocol 10 of the
handshake, which both servers document.
"""

from __future__ import annotations

import socket

_HEADER_BYTES, _ERROR = 4, 0xFF
_BEFORE_CAPABILITIES = 4 + 8 + 1
"""Of the connection's number, of what the password is mixed with, of a zero."""
_TLS = 0x0800


def offers_tls(host: str, port: int, seconds: float) -> bool:
    """Whether a server can encrypt. Raises OSError where none answers, ValueError with its words
    where it turns the connection away or is no such server."""
    with socket.create_connection((host, port), seconds) as connection, connection.makefile("rb") as file:
        header = file.read(_HEADER_BYTES)
        greeting = file.read(int.from_bytes(header[:3], "little"))
    if greeting[:1] == bytes([_ERROR]):
        raise ValueError(greeting[3:].decode("utf-8", "replace"))
    _, found, rest = greeting.partition(b"\0")
    if greeting[:1] != b"\x0a" or not found or len(rest) < _BEFORE_CAPABILITIES + 2:
        raise ValueError("what answers is neither MySQL nor MariaDB")
    return bool(int.from_bytes(rest[_BEFORE_CAPABILITIES : _BEFORE_CAPABILITIES + 2], "little") & _TLS)
