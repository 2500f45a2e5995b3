"""Checkpoints as the texts that commits hold: compact JSON that names its own format. What stands
in it beside that is each source's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hudi_table.model.json_text import parse_json

C = TypeVar("C")
Form = str | int


def written(form: Form, document: Mapping[str, Any]) -> str:
    """The text of a document of this format."""
    return json.dumps({"format": form, **document}, separators=(",", ":"), ensure_ascii=False)


def form_of(text: str) -> Form:
    """The format that a text names, \"\" for what is no checkpoint at all."""
    try:
        raw = parse_json(text)
    except ValueError:
        return ""
    found = raw.get("format") if isinstance(raw, dict) else None
    return found if isinstance(found, str | int) else ""


def parsed(text: str, form: Form, of: str, read: Callable[[Mapping[str, Any]], C]) -> C:
    """What `read` makes of a text of this format; `of`: whose checkpoints have it, in words. Raises
    ValueError for anything that `written` did not write."""
    wrong = f"is no checkpoint of {of}: {text[:80]!r}"
    try:
        raw = parse_json(text)
    except ValueError as error:
        raise ValueError(wrong) from error
    if not isinstance(raw, dict) or raw.get("format") != form:
        raise ValueError(wrong)
    try:
        return read(raw)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(wrong) from error


def texts(raw: Mapping[str, Any], *names: str) -> list[str]:
    """The texts under these names. Raises KeyError."""
    return [str(raw[name]) for name in names]
