"""Values of options as Python types: one parser for each kind, whoever reads the option.

A kind is written as in `data/options.tsv`: `boolean`; `whole`, or `whole 1` from 1 on; `number`;
`fraction`, between 0 and 1; `regex`; `zone`, of time; `class A|B`, by its short name or as Hudi
writes it, `classes A|B` for several with commas between; `list A|B` of some of these values, where
commas in quotes part nothing;
`text`; or the values there are, `A|B|C`, in any case. Numbers are ASCII digits: `²` and `1_000` are
none.
"""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from hudi_table.errors import InvalidOptionError
from hudi_table.model import digits

BOOLEAN, WHOLE, NUMBER, FRACTION, TEXT = "boolean", "whole", "number", "fraction", "text"
REGEX, ZONE, CLASS, CLASSES, LIST = "regex", "zone", "class", "classes", "list"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_SECRET = re.compile(
    r"passw|secret|token|credential|api\.key|access\.key|jdbcurl|header|connection|url|uri", re.IGNORECASE
)
_SHOWN_MAX = 200
_MEMBER = re.compile(r"(?:[^,']|'[^']*'|')+")
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?")
_CLASS_ENDINGS = (
    "ClusteringPlanStrategy",
    "PlanStrategy",
    "CompactionStrategy",
    "ClusteringExecutionStrategy",
    "ExecutionStrategy",
    "Strategy",
)


def shown(key: str, value: str) -> str:
    """A value for a message: cut where it is long, hidden where the key says that it may be a
    secret."""
    if _SECRET.search(key):
        return "(hidden)"
    return repr(value if len(value) <= _SHOWN_MAX else value[:_SHOWN_MAX] + "…")


def boolean(key: str, text: str) -> bool:
    """`true` or `false`, in any case. Raises InvalidOptionError."""
    if text.strip().lower() not in ("true", "false"):
        raise InvalidOptionError(f"option {key!r}: {shown(key, text)} is neither 'true' nor 'false'")
    return stored_boolean(text)


def stored_boolean(text: str | None) -> bool:
    """A boolean that a table stores, as Java reads it: whatever is not `true`, in any case, is
    false; so is what is absent."""
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


def regex(key: str, text: str) -> re.Pattern[str]:
    """A regular expression. Raises InvalidOptionError."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidOptionError(f"option {key!r}: {shown(key, text)} is no regular expression: {error}") from error


def zone_name(text: str) -> str:
    """A time zone as Arrow takes it: `GMT+8:00` is `+08:00`. Raises InvalidOptionError for an
    unknown one."""
    match = _OFFSET.fullmatch(text)
    if match:
        return f"{match[1]}{int(match[2]):02d}:{match[3] or '00'}"
    try:
        ZoneInfo(text)
    except (ValueError, KeyError, OSError) as error:
        message = f"the time zone {text!r} is not known: use a name such as Europe/Berlin or an offset such as GMT+8:00"
        raise InvalidOptionError(message) from error
    return text


def short_class(text: str) -> str:
    """The short name of one of Hudi's strategies: `SizeBased` for
    `org.apache.hudi.….SparkSizeBasedClusteringPlanStrategy`."""
    name = text.strip().rpartition(".")[2].removeprefix("Spark")
    return next((name.removesuffix(ending) for ending in _CLASS_ENDINGS if name.endswith(ending)), name)


def members(text: str) -> list[str]:
    """The members of a comma list, of which one may hold commas in single quotes."""
    return [one for found in _MEMBER.findall(text) if (one := found.strip())]


def may_be_blank(kind: str) -> bool:
    """Whether no text is a value of a kind: of names and patterns, of which there may be none."""
    return kind.partition(" ")[0] in (TEXT, REGEX, CLASSES, LIST)


def check_value(key: str, kind: str, text: str) -> None:
    """Raise InvalidOptionError for a value that is none of a kind."""
    name, _, more = kind.partition(" ")
    if name == BOOLEAN:
        boolean(key, text)
    elif name == WHOLE:
        whole(key, text, int(more) if more else None)
    elif name == NUMBER:
        number(key, text, float(more) if more else None)
    elif name == FRACTION:
        fraction(key, text)
    elif name == REGEX:
        regex(key, text)
    elif name == ZONE:
        _check_zone(key, text)
    elif name in (CLASS, CLASSES):
        _check_members(key, more, text, [short_class(one) for one in (text.split(",") if name == CLASSES else [text])])
    elif name == LIST:
        _check_members(key, more, text, members(text))
    elif name != TEXT and text.strip().lower() not in kind.lower().split("|"):
        raise InvalidOptionError(f"option {key!r}: {shown(key, text)} is none of {', '.join(kind.split('|'))}")


def _check_zone(key: str, text: str) -> None:
    try:
        zone_name(text.strip())
    except InvalidOptionError as error:
        raise InvalidOptionError(f"option {key!r}: {error.message}") from error


def _check_members(key: str, allowed: str, text: str, given: list[str]) -> None:
    known = allowed.split("|")
    # One that holds `<name>` stands for every text that begins as it does.
    begins = tuple(one.partition("<")[0] for one in known if "<" in one)
    if not all(one in known or one.startswith(begins) for one in given):
        raise InvalidOptionError(f"option {key!r}: {shown(key, text)} is none of {', '.join(allowed.split('|'))}")
