"""To whom something may be sent: the hosts that whoever runs the sender has listed, and of their
addresses those that are not its own machine or link.

A name that is listed may resolve to any address, so the address is judged, too, and it is the
judged one that is connected to.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from queue import Empty, Queue
from urllib.parse import urlsplit

from hudi_table.errors import InvalidOptionError
from hudi_table.table.store import threads

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a URL: `host` in lower case, without the brackets of an IPv6 address."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Target:
        """Raises InvalidOptionError for what is no URL of http or https, or holds a user, a query
        or a fragment."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InvalidOptionError(f"url is no URL: {error}") from error
        if (
            parts.scheme not in PORTS
            or not parts.hostname
            or parts.username is not None
            or parts.query
            or parts.fragment
        ):
            raise InvalidOptionError(
                "url is http(s)://host[:port]/path, without user, query and fragment: give a token in the Secret"
            )
        if not (
            parts.path.isascii() and parts.path.isprintable() and " " not in parts.path and parts.hostname.isascii()
        ):
            raise InvalidOptionError("url holds characters that must be percent-encoded")
        return cls(parts.scheme, parts.hostname, port or PORTS[parts.scheme], parts.path or "/")


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is listed: names, `*.name` for all below a name, addresses and networks, each for every
    port."""

    names: frozenset[str] = frozenset()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Allowed:
        """Raises InvalidOptionError for an entry that is neither."""
        names, networks = set(), []
        for entry in entries:
            text = entry.strip().lower()
            try:
                networks.append(ipaddress.ip_network(text.strip("[]"), strict=False))
            except ValueError:
                bare = text.removeprefix("*.")
                if not bare or not all(part and set(part) <= _LETTERS for part in bare.split(".")):
                    raise InvalidOptionError(
                        f"{entry!r} is no host: give a name such as hooks.example.com, *.example.com, an address or a network"
                    ) from None
                names.add(text)
        return cls(frozenset(names), tuple(networks))

    def host(self, host: str) -> bool:
        """Whether a host may be named in a URL."""
        try:
            return self._listed(ipaddress.ip_address(host))
        except ValueError:
            labels = host.rstrip(".").split(".")
            above = (".".join(labels[number:]) for number in range(1, len(labels)))
            return ".".join(labels) in self.names or any(f"*.{name}" in self.names for name in above)

    def address(self, address: Address) -> bool:
        """Whether one of a listed name's addresses may be connected to. Those of this machine and
        its link must be listed themselves: an operator reaches there what nobody else can, such as
        the credentials of its node."""
        plain = address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address
        own = (
            plain.is_loopback or plain.is_link_local or plain.is_unspecified or plain.is_multicast or plain.is_reserved
        )
        return not own or self._listed(plain)

    def _listed(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


def addresses_of(target: Target, *, seconds: float | None = None) -> list[Address]:
    """All addresses of a host. Raises OSError if it has none, TimeoutError if none are known after
    so many seconds."""
    if seconds is None:
        return _resolved(target)
    # A resolver takes no time to be ended by: it is left to itself, and ends by its own limits.
    answered: Queue[list[Address] | OSError] = threads.queue(1)
    threads.start(lambda: _answers(target, answered), "resolver")
    try:
        found = answered.get(timeout=seconds)
    except Empty:
        raise TimeoutError from None
    if isinstance(found, OSError):
        raise found
    return found


def _answers(target: Target, answered: Queue[list[Address] | OSError]) -> None:
    try:
        answered.put(_resolved(target))
    except OSError as error:
        answered.put(error)


def _resolved(target: Target) -> list[Address]:
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a part of the name is too long, or empty
        raise socket.gaierror(socket.EAI_NONAME, "no name of a host") from error
    return list(dict.fromkeys(ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found))
