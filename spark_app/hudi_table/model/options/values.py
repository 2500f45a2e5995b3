"""Values of options as Python types: one parser for each kind, whoever reads the option.

A kind is written as in `data/options.tsv`: `boolean`; `whole`, or `whole 1` from 1 on; `number`; `fraction`, between 0 and 1; `text`; or the
values there are, `A|B|C`, in any case. Numbers are ASCII digits: `²` and `1_000` are none.
"""

from __future__ import annotations

import re

from hudi_table.errors import InvalidOptionError
from hudi_table.model import digits

BOOLEAN, WHOLE, NUMBER, FRACTION, TEXT = "boolean", "whole", "number", "fraction", "text"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_SECRET = re.compile(
    r"passw|secret|token|credential|api\.key|access\.key|jdbcurl|header|connection|url|uri", re.IGNORECASE
)
_SHOWN_MAX = 200


def shown(key: str, value: str) -> str:
    """A value for a message: cut where it is long, hidden where the key says that it may be a secret."""
    if _SECRET.search(key):
        return "(hidden)"
    return repr(value if len(value) <= _SHOWN_MAX else value[:_SHOWN_MAX] + "…")


def boolean(key: str, text: str) -> bool:
    """`true` or `false`, in any case. Raises InvalidOptionError."""
    if text.strip().lower() not in ("true", "false"):
        raise InvalidOptionError(f"option {key!r}: {shown(key, text)} is neither 'true' nor 'false'")
    return stored_boolean(text)


def stored_boolean(text: str | None) -> bool:
    """A boolean that a table stores, as Java reads it: whatever is not `true`, in any case, is false; so is what is absent."""
    return (text or "").strip().lower() == "true"


def whole(key: str, text: str, least: int | None = None) -> int:
    """A whole number of at most 18 digits, at least `least`. Raises InvalidOptionError."""
    value = text.strip()
    size = digits.whole(value.removeprefix("-"))
    found = None if size is None else -size if value.startswith("-") else size
    if found is None or (least is not None and found < least):
        beginning = "" if least is None else f" from {least}"
        raise InvalidOptionError(f"option {key!r}: {shown(key, text)} is not a whole number{beginning}")
    return found


def number(key: str, text: str, least: float | None = None) -> float:
    """A finite number, at least `least`. Raises InvalidOptionError."""
    value = text.strip()
    if not _NUMBER.fullmatch(value):
        raise InvalidOptionError(f"option {key!r}: {shown(key, text)} is not a number")
    found = float(value)
    if not float("-inf") < found < float("inf"):
        raise InvalidOptionError(f"option {key!r}: {value} is not a finite number")
    if least is not None and found < least:
        raise InvalidOptionError(f"option {key!r}: {value} is less than {least:g}")
    return found


def fraction(key: str, text: str) -> float:
    """A number between 0 and 1, neither included. Raises InvalidOptionError."""
    found = number(key, text)
    if not 0 < found < 1:
        raise InvalidOptionError(f"option {key!r}: {text.strip()} is not between 0 and 1")
    return found


def check_value(key: str, kind: str, text: str) -> None:
    """Raise InvalidOptionError for a value that is none of a kind."""
    name, _, least = kind.partition(" ")
    if name == BOOLEAN:
        boolean(key, text)
    elif name == WHOLE:
        whole(key, text, int(least) if least else None)
    elif name == NUMBER:
        number(key, text, float(least) if least else None)
    elif name == FRACTION:
        fraction(key, text)
    elif name != TEXT and text.strip().lower() not in kind.lower().split("|"):
        raise InvalidOptionError(f"option {key!r}: {shown(key, text)} is none of {', '.join(kind.split('|'))}")
