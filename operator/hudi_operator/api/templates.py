"""Templates of a HudiTableSet: placeholders such as `{topic}`, what an override changes, and names
that Kubernetes takes. Texts in, texts out."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hudi_operator.api.parsing import FieldError

PLACEHOLDERS = ("topic", "table", "schema", "name", "namespace", "set")
KEY = "{key}"
"""As a column of `recordKey`: those of the topic's key."""
_OF_RECORD_KEY = re.compile(r"\.recordKey\[\d+\]$")
_BRACES = re.compile(r"\{\{(\w+)\}\}|\{([A-Za-z]\w*)\}")
"""`{{word}}` stands for `{word}` itself. Other braces, such as `{2}` of a pattern, are texts."""
_OTHERS = re.compile(r"[^a-z0-9]+")
NAME_LENGTH_MAX = 63
"""Of a label, too: names of tables stand in some."""
_DIGEST_LENGTH = 8


def filled(value: Any, values: Mapping[str, str]) -> Any:
    """A template, its placeholders replaced in every text but names of fields. A placeholder that
    nobody knows stays; `unknown_placeholders` tells of it."""
    if isinstance(value, str):
        return _BRACES.sub(lambda found: _filled(found, values), value)
    if isinstance(value, Mapping):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, values) for item in value]
    return value


def _filled(found: re.Match[str], values: Mapping[str, str]) -> str:
    if found[1] is not None:
        return f"{{{found[1]}}}"
    return values.get(found[2], found[0])


def unknown_placeholders(value: Any, path: str) -> Iterator[FieldError]:
    """Placeholders of a template that nobody knows, each with its place and the nearest one."""
    if isinstance(value, str):
        if value == KEY and _OF_RECORD_KEY.search(path):
            return
        for found in _BRACES.finditer(value):
            if found[1] is None and found[2] not in PLACEHOLDERS:
                near = difflib.get_close_matches(found[2], PLACEHOLDERS, n=1)
                known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
                hint = f"did you mean {{{near[0]}}}?" if near else f"there are {known}"
                said = f"no placeholder is named {{{found[2]}}}: {hint}; write {{{{{found[2]}}}}} for the text itself"
                yield FieldError(path, said)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from unknown_placeholders(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from unknown_placeholders(item, f"{path}[{number}]")


def values_of(topic: str, namespace: str, of_set: str) -> dict[str, str]:
    """What the placeholders of a topic stand for, but its table's name. A topic of Debezium ends
    with schema and table; `{table}` of another one is what follows its last dot, and never
    nothing."""
    *before, table = topic.split(".")
    schema = before[-1] if before else ""
    return {"topic": topic, "table": table or topic, "schema": schema, "namespace": namespace, "set": of_set}


def with_key(names: Sequence[str], key: Sequence[str]) -> list[str]:
    """A record key in which the columns of the topic's key stand for `{key}`, each column once."""
    return list(dict.fromkeys(column for name in names for column in (key if name == KEY else (name,))))


def object_name(text: str) -> str:
    """A name that Kubernetes takes, made of a text; "" where it holds no letter and no digit. One
    that is too long ends with a digest, so that two of them stay two."""
    name = _OTHERS.sub("-", text.lower()).strip("-")
    if len(name) <= NAME_LENGTH_MAX:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: NAME_LENGTH_MAX - _DIGEST_LENGTH - 1].rstrip('-')}-{digest}"


def merged(base: Any, change: Any) -> Any:
    """A document changed as by a JSON merge patch (null takes a field away), but lists of items
    that have names are merged by them."""
    if isinstance(base, Mapping) and isinstance(change, Mapping):
        found = dict(base)
        for key, value in change.items():
            if value is None:
                found.pop(key, None)
            else:
                found[key] = merged(found.get(key), value)
        return found
    if _named(base) and _named(change):
        changes = {item["name"]: item for item in change}
        kept = [merged(item, changes.pop(item["name"])) if item["name"] in changes else item for item in base]
        return [*kept, *(merged({}, item) for item in changes.values())]
    if isinstance(change, Mapping):
        return merged({}, change)
    return change


def _named(value: Any) -> bool:
    """Whether a list has items that have names, each another one."""
    if not isinstance(value, list) or not value:
        return False
    names = [item.get("name") if isinstance(item, Mapping) else None for item in value]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
