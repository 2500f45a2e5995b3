"""Schemas as fastavro takes them for what Avro and Arrow do.

Fact (Avro for Java, and Hudi 1.2.0 for vectors and blobs): where a name alone is no type of the
namespace around it, it is one without a namespace. fastavro 1.13 looks in the namespace around it
alone, so such types get one of their own here. Nothing of a name is in the bytes of a value.

fastavro makes an object of a uuid, which no column takes, and of a date or a time, of which
Python's calendar has the years 1 to 9999 alone. They stay the text, bytes and numbers that they
are.
"""

from __future__ import annotations

from typing import Any, Final

_OWN: Final = "without_namespace"
_OBJECTS: Final = ("uuid", "date", "time-", "timestamp-", "local-timestamp-")
"""How the logical types begin whose values stay what they are in Avro."""
_NAMED: Final = ("record", "error", "fixed", "enum")


def for_fastavro(document: Any) -> Any:
    """A parsed schema in which every name has a namespace where one is around it, and uuids,
    dates and times are plain text, bytes and numbers."""
    return _typed(document, "", set(), set())


def _typed(kind: Any, space: str, known: set[str], bare: set[str]) -> Any:
    """`known`: full names told so far, `bare`: names of those without a namespace."""
    if isinstance(kind, list):
        return [_typed(each, space, known, bare) for each in kind]
    if isinstance(kind, str):
        return f"{_OWN}.{kind}" if kind in bare and f"{space}.{kind}" not in known else kind
    if not isinstance(kind, dict):
        return kind
    if kind.get("type") in _NAMED:
        return _defined(kind, space, known, bare)
    inside = {key: _typed(kind[key], space, known, bare) for key in ("type", "items", "values") if key in kind}
    return _plain({**kind, **inside})


def _plain(kind: dict[str, Any]) -> dict[str, Any]:
    if not str(kind.get("logicalType", "")).startswith(_OBJECTS):
        return kind
    return {key: value for key, value in kind.items() if key != "logicalType"}


def _defined(kind: dict[str, Any], space: str, known: set[str], bare: set[str]) -> dict[str, Any]:
    name = str(kind["name"])
    inner = name.rpartition(".")[0] if "." in name else str(kind.get("namespace", space) or "")
    found = dict(_plain(kind))
    if space and not inner:
        found["namespace"] = inner = _OWN
    if inner == _OWN:
        bare.add(name)
    known.add(name if "." in name else f"{inner}.{name}")
    if "fields" in kind:
        found["fields"] = [
            {**each, "type": _typed(each["type"], inner, known, bare)} for each in kind.get("fields") or ()
        ]
    return found
