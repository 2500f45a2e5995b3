"""What a location names: scheme, bucket or host, path. A secret in one is refused and never said
again.

Locations are taken literally; only `file:` URLs are percent-decoded, by RFC 8089, and then must
mean the same path to every reader: no `.` or `..` segment, no encoded `/`, text in UTF-8.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from hudi_table.errors import InvalidRequestError, without_users

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ENCODED_SLASH = re.compile(r"%(2f|5c)", re.IGNORECASE)
_PASSWORD = re.compile(r"[^/:@]*:.*@", re.DOTALL)
"""What begins a location with a user and a password, in which a slash may stand."""
_QUERY = re.compile(r"\?.*", re.DOTALL)
_ONE_SLASH = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)
"""What begins a URI that lost a slash, or a path of another system: as a path it would be a folder
of that name."""
_IN_HOST = frozenset({"abfs", "abfss"})
"""Schemes that write `container@account` where others have a user."""


def parse_location(uri: str) -> tuple[str, str, str]:
    """(scheme in lower case, bucket or host, path). Raises InvalidRequestError, whose message
    repeats no user and no query."""
    scheme, separator, rest = uri.partition("://")
    scheme = scheme.lower()
    # Before anything else: a password may have characters for which the text would be refused, and shown.
    if _PASSWORD.match(rest):
        raise _with_secret(scheme)
    if not uri or "\0" in uri:
        raise InvalidRequestError(f"{shown(uri)!r} is not a location: give a path or a URI such as s3://bucket/prefix")
    try:
        uri.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{uri!r} is not valid Unicode: a table needs a location in UTF-8") from None
    if not separator and uri.lower().startswith("file:/"):
        return "file", "", _decoded(uri, uri[len("file:") :])
    if not separator:
        _refuse_other_paths(uri)
        return "file", "", uri
    if scheme == "file":
        host, _, path = rest.partition("/")
        if host not in ("", "localhost"):
            raise InvalidRequestError(
                f"{shown(uri)!r} names the host {host.rpartition('@')[2]!r}: write file:///absolute/path"
            )
        return "file", "", _decoded(uri, f"/{path}")
    authority, _, path = rest.partition("/")
    _refuse_secrets(uri, scheme, authority, path)
    if not authority:
        raise InvalidRequestError(f"{shown(uri)!r} names no bucket: write {scheme}://bucket/prefix")
    return scheme, authority, path


def _refuse_other_paths(path: str) -> None:
    """Refuse what looks like a path and means another place to who wrote it. Raises
    InvalidRequestError."""
    if found := _ONE_SLASH.match(path):
        raise InvalidRequestError(
            f"{path!r} has one slash behind {found[1]!r}: write {found[1]}://bucket/prefix for a store, "
            f"and ./{path} for a folder of that name"
        )
    if path == "~" or path.startswith("~/"):
        raise InvalidRequestError(
            f"{path!r} begins with '~', which only a shell knows: write the whole path, and ./{path} for a folder of that name"
        )


def local_path(location: str) -> str:
    """The absolute path that a location on local disk means. Raises InvalidRequestError for the
    root of the disk."""
    if not location.strip("/"):
        raise InvalidRequestError(f"{location!r} is the root of the disk: a table needs a folder of its own")
    return os.path.abspath(location)


def shown(uri: str) -> str:
    """A location as messages may repeat it: what stands where users, passwords and signatures stand
    is left out."""
    return _QUERY.sub("?…", without_users(uri)) if "://" in uri else uri


def endpoint_problem(endpoint: str) -> str | None:
    """Why a text is no URL of a server, or None. It may hold a password, so the answer does not
    repeat it."""
    if "@" in endpoint:
        return "holds a user or password (…@): credentials are options of their own"
    try:
        parts = urlsplit(endpoint)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        return "is no URL of a server: write http://host:port or https://host"
    return None


def _decoded(uri: str, path: str) -> str:
    try:
        plain = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequestError(f"{uri!r} does not name a path in UTF-8: write the path itself") from None
    if _ENCODED_SLASH.search(path) or "\0" in plain or {".", ".."} & set(plain.split("/")):
        raise InvalidRequestError(
            f"{uri!r} has a '.' or '..' segment, an encoded slash or an encoded NUL: write the path that is meant"
        )
    return plain


def _refuse_secrets(uri: str, scheme: str, authority: str, path: str) -> None:
    if "@" in authority and (scheme not in _IN_HOST or ":" in authority.rpartition("@")[0]):
        raise _with_secret(scheme)
    if "?" in path and "=" in path.partition("?")[2]:
        raise InvalidRequestError(
            f"{shown(uri)!r} has a query: signatures and keys belong into the options, never into the URI"
        )
    if _CONTROL.search(authority) or " " in authority:
        raise InvalidRequestError(f"{shown(uri)!r} has a space or control character where the bucket stands")


def _with_secret(scheme: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the {scheme} location holds a user or password (…@): credentials belong into the options, never into the URI"
    )
