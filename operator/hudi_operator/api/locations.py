"""Locations of tables and sources, compared by the segments of their paths."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

_ALIASES = {"s3a": "s3", "abfss": "abfs"}
"""Schemes that name the same store."""
_PORTS = {"http": "80", "https": "443"}
CLUSTERLESS = ("file", "memory")
"""Schemes that mean something else in each pod."""


def scheme_of(location: str) -> str:
    """The scheme, in lower case, an alias by its plain name."""
    scheme = location.partition("://")[0].lower()
    return _ALIASES.get(scheme, scheme)


def path_of(location: str) -> str:
    """The absolute path of a `file:` location."""
    return posixpath.normpath("/" + unquote(location.partition("://")[2].removeprefix("localhost")).lstrip("/"))


def segments(location: str) -> tuple[str, ...]:
    """Scheme, bucket and folders: two locations are the same place if these are."""
    scheme = scheme_of(location)
    rest = path_of(location) if scheme == "file" else location.partition("://")[2]
    return (scheme, *(part for part in rest.split("/") if part))


def overlap(one: str, other: str) -> bool:
    """Whether two locations are the same, or one lies below the other."""
    here, there = segments(one), segments(other)
    return here[: len(there)] == there[: len(here)]


def server_of(endpoint: str) -> str:
    """An endpoint in one spelling: names of hosts have no case, and a port that goes without saying
    is left out."""
    scheme, _, rest = endpoint.partition("://")
    host, slash, path = rest.partition("/")
    scheme = scheme.lower()
    host = host.lower().removesuffix(f":{_PORTS.get(scheme, '')}")
    return f"{scheme}://{host}{slash}{path}".rstrip("/") if rest else endpoint
