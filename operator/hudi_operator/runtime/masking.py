"""Messages without the values of a Secret, in whatever form a client writes them."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from hudi_operator.plan.observed import Problem, SourceObservation

T = TypeVar("T")
SECRET_LENGTH_MIN = 4
"""Shorter values are not masked in messages: they would mask ordinary words."""
QUOTED_LENGTH_MAX = 256
"""Longer values are texts of certificates and keys, which nobody puts into a URL."""
_SECRETS_KEPT = 256
_USERNAME, _PASSWORD = "_USERNAME", "_PASSWORD"
_SPACE = r"(?:\s|\+|%20|%0[9AaDd]|\\[nrt])"


def masked(message: str | None, secret: Mapping[str, str]) -> str | None:
    """A message without any value of the secret: as it is, quoted for a URL or as JSON, with its
    lines joined, in base64, or as the credentials of an Authorization header."""
    found = _pattern(frozenset(secret.items())) if message else None
    return found.sub("***", message) if found is not None and message is not None else message


def masked_problem(problem: Problem, secret: Mapping[str, str]) -> Problem:
    """A problem whose message holds no value of the secret."""
    return replace(problem, message=masked(problem.message, secret) or "")


def masked_source(source: SourceObservation, secret: Mapping[str, str]) -> SourceObservation:
    """What was seen of a source, with no value of the secret in what could not be seen."""

    def shown(seen: T) -> T | Problem:
        return masked_problem(seen, secret) if isinstance(seen, Problem) else seen

    found = replace(source, lag=shown(source.lag), retention=shown(source.retention))
    return replace(found, problem=masked_problem(found.problem, secret)) if found.problem is not None else found


@lru_cache(_SECRETS_KEPT)
def _pattern(secret: Collection[tuple[str, str]]) -> re.Pattern[str] | None:
    """Whatever a message says of the values, None if there are none. A value that holds another one
    comes first."""
    values = dict(secret)
    written = [value for value in values.values() if len(value.strip()) >= SECRET_LENGTH_MIN]
    basic = [f"{values.get(_user_of(name), '')}:{value}" for name, value in values.items() if name.endswith(_PASSWORD)]
    forms = [_written(value) for value in sorted(written, key=len, reverse=True)]
    forms = [*(form for value in (*basic, *written) for form in _in_base64(value)), *forms]
    return re.compile("|".join(forms)) if forms else None


def _user_of(password: str) -> str:
    return password.removesuffix(_PASSWORD) + _USERNAME


def _written(value: str) -> str:
    """A pattern of a value. What clients quote in URLs differs, so any character may be."""
    quoted = re.escape if len(value) > QUOTED_LENGTH_MAX else _quoted
    inner = "".join(f"{_SPACE}+" if part.isspace() else quoted(part) for part in re.split(r"(\s+)", value.strip()))
    return inner + (f"{_SPACE}*" if value[-1:].isspace() else "")


def _quoted(text: str) -> str:
    if len(text) > QUOTED_LENGTH_MAX:
        return re.escape(text)
    return "".join(char if char.isascii() and char.isalnum() else _character(char) for char in text)


def _character(char: str) -> str:
    in_url = "".join(f"%{byte:02x}" for byte in char.encode())
    in_json = "".join(rf"\\u{unit:04x}" for unit in _utf16(char))
    return rf"(?:\\?{re.escape(char)}|(?i:{in_url}|{in_json}))"


def _utf16(char: str) -> Iterator[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    for place in range(0, len(data), 2):
        yield int.from_bytes(data[place : place + 2])


def _in_base64(value: str) -> Iterator[str]:
    data = value.encode()
    forms = (
        {base64.b64encode(data), base64.urlsafe_b64encode(data)}
        if len(value) <= QUOTED_LENGTH_MAX
        else {base64.b64encode(data)}
    )
    for text in forms:
        yield _quoted(text.decode().rstrip("=")) + "(?:=|%3[Dd])*"
