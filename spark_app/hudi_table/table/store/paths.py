"""Which paths and locations a storage accepts: nothing leaves the base, on any store."""

from __future__ import annotations

import re

from hudi_table.errors import InvalidRequestError

MAX_KEY_BYTES = 1024
"""Longest object key that S3, GCS and Azure take (UTF-8 bytes, base prefix included)."""
MAX_SEGMENT_BYTES = 255
"""Longest file name that the common Linux file systems take (UTF-8 bytes)."""
STAGING_SUFFIX = ".hudi-staging"
"""Ends the name of an unfinished file on local disk; never listed, never accepted from a caller."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SEPARATORS = re.compile(r"[/\\]")


def check_path(path: str, *, base_path: str = "", what: str = "path") -> str:
    """The path itself, if it names an object strictly below the base.

    Refused with InvalidRequestError: '', absolute paths, empty, `.` and `..` segments (also between
    backslashes, which some systems take for separators), control characters (no object store client
    here can name them), text that is not UTF-8, and names of unfinished files.
    """
    if not path:
        raise InvalidRequestError(f"{what} is empty: it must name an object below {base_path or 'the base'}")
    problem = _problem(path)
    if problem:
        raise InvalidRequestError(
            f"{what} {_shorten(path)!r} {problem}; it cannot be stored below {base_path or 'the base'}",
        )
    return path


def check_folder(path: str, *, base_path: str = "") -> str:
    """Like `check_path`, for a folder: '' is the base itself."""
    return check_path(path, base_path=base_path, what="folder") if path else path


def _problem(path: str) -> str | None:
    if path.startswith("/"):
        return "is absolute"
    segments = path.split("/")
    if "" in segments:
        return "has an empty segment"
    if any(segment in (".", "..") for segment in _SEPARATORS.split(path)):
        return "has a '.' or '..' segment"
    control = _CONTROL.search(path)
    if control:
        return f"has the control character U+{ord(control[0]):04X} (set url_encode on the table to have it escaped)"
    if not path.isascii():
        try:
            path.encode()
        except UnicodeEncodeError:
            return "is not valid Unicode"
    if any(segment.endswith(STAGING_SUFFIX) for segment in segments):
        return f"has a name that ends with {STAGING_SUFFIX!r}, which marks unfinished files"
    return None


def _shorten(path: str, limit: int = 120) -> str:
    return path if len(path) <= limit else f"{path[:limit]}… ({len(path)} characters)"
