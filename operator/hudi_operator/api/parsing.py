"""Documents → typed parts, every field error at once, each with its path and the next step."""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from hudi_operator.api.reading import read
from hudi_operator.api.schema import Prop, bare_hints, default_of, fields_of, prop_of, rules_of

T = TypeVar("T")

_NAMES: dict[type, str] = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
_ABSENT = object()
VALUE_SHOWN_MAX = 60


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong: `path` such as `spec.ingest[0].source.path`, and what to do about
    it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def parse(cls: type[T], raw: object, path: str) -> tuple[T | None, tuple[FieldError, ...]]:
    """The part of class `cls` that a document describes, and all its errors. The part is None if it
    cannot be built."""
    found = read(cls, raw)
    if found is not None:
        return found, ()
    parser = _Parser()
    value = parser.part(cls, raw, path)
    return value, tuple(parser.errors)


class _Parser:
    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def part(self, cls: type[T], raw: object, path: str) -> T | None:
        if not isinstance(raw, Mapping):
            self.errors.append(FieldError(path, f"must be an object, not {_shown(raw)}"))
            return None
        fields = fields_of(typing.cast("type", cls))
        self._unknown(raw, fields, path)
        values: dict[str, Any] = {}
        complete = True
        for name, field in fields.items():
            value = self._field(cls, field, raw.get(name), f"{path}.{name}")
            complete = complete and value is not _ABSENT
            values[field.name] = value
        if not complete:
            return None
        found = cls(**values)
        self._rules(found, path)
        return found

    def _unknown(self, raw: Mapping[object, object], known: Collection[str], path: str) -> None:
        for name in raw:
            if name not in known:
                close = difflib.get_close_matches(str(name), list(known), n=1)
                hint = f"did you mean {close[0]}?" if close else f"known fields: {', '.join(known)}"
                self.errors.append(FieldError(f"{path}.{name}", f"unknown field; {hint}"))

    def _field(self, cls: type, field: dataclasses.Field[Any], raw: object, path: str) -> Any:
        if raw is None:
            default = default_of(field)
            if default is dataclasses.MISSING:
                self.errors.append(FieldError(path, f"is required: {prop_of(field).doc}"))
                return _ABSENT
            return default
        prop = prop_of(field)
        before = len(self.errors)
        value = self._value(bare_hints(cls)[field.name], raw, path, prop)
        if len(self.errors) == before:
            self._limits(value, path, prop)
        # A part with errors inside is left out, so that rules over it do not speak of what is already reported.
        return value if len(self.errors) == before else _ABSENT

    def _value(self, hint: Any, raw: object, path: str, prop: Prop) -> Any:
        if dataclasses.is_dataclass(hint):
            return self.part(typing.cast("type", hint), raw, path)
        origin = typing.get_origin(hint)
        if origin is tuple:
            return self._list(typing.get_args(hint)[0], raw, path, prop)
        if origin is dict:
            return self._map(typing.get_args(hint)[1], raw, path)
        if issubclass(hint, StrEnum):
            known = [member.value for member in hint]
            if raw not in known:
                meant = next((name for name in known if name.lower() == str(raw).lower()), None)
                hint = f"did you mean {meant}?" if meant else f"must be one of {', '.join(known)}"
                self.errors.append(FieldError(path, f"is {_shown(raw)}, {hint}"))
                return None
            return hint(raw)
        if not _is_a(hint, raw):
            self.errors.append(FieldError(path, f"must be {_NAMES[hint]}, not {_shown(raw)}"))
        return raw

    def _list(self, item: Any, raw: object, path: str, prop: Prop) -> tuple[Any, ...]:
        if not isinstance(raw, list | tuple):
            one = f": write [{raw}]" if isinstance(raw, str) and raw.isidentifier() else ""
            self.errors.append(FieldError(path, f"must be a list, not {_shown(raw)}{one}"))
            return ()
        inner = Prop(prop.doc, max_length=prop.item_max_length)
        values = tuple(self._value(item, value, f"{path}[{i}]", inner) for i, value in enumerate(raw))
        for i, value in enumerate(values):
            if isinstance(value, str):
                self._limits(value, f"{path}[{i}]", inner)
        if prop.list_key:
            keys = [str(value.get(prop.list_key)) for value in raw if isinstance(value, Mapping)]
            for key in sorted({key for key in keys if keys.count(key) > 1}):
                self.errors.append(FieldError(path, f"has two entries whose {prop.list_key} is {key!r}"))
        if prop.unique:
            for value in sorted({value for value in raw if isinstance(value, str) and raw.count(value) > 1}):
                self.errors.append(FieldError(path, f"has {_shown(value)} twice"))
        return values

    def _map(self, item: Any, raw: object, path: str) -> dict[str, Any]:
        if not isinstance(raw, Mapping):
            self.errors.append(FieldError(path, f"must be an object, not {_shown(raw)}"))
            return {}
        for key, value in raw.items():
            if item is not Any and not _is_a(item, value):
                hint = "; quote it" if item is str else ""
                self.errors.append(FieldError(f"{path}[{key}]", f"must be {_NAMES[item]}, not {_shown(value)}{hint}"))
        return {str(key): value for key, value in raw.items()}

    def _limits(self, value: Any, path: str, prop: Prop) -> None:
        for message in _broken(value, prop):
            self.errors.append(FieldError(path, f"is {_shown(value)}, {message}"))

    def _rules(self, part: object, path: str) -> None:
        for rule in rules_of(type(part)):
            if rule.holds is not None and not rule.holds(part):
                self.errors.append(FieldError(f"{path}.{rule.path}" if rule.path else path, rule.message))


def _broken(value: Any, prop: Prop) -> Iterator[str]:
    """What a value must be and is not."""
    if prop.minimum is not None and value < prop.minimum:
        yield f"must be at least {prop.minimum}"
    if prop.maximum is not None and value > prop.maximum:
        yield f"must be at most {prop.maximum}"
    if prop.min_length is not None and len(value) < prop.min_length:
        yield "must not be empty"
    if prop.max_length is not None and len(value) > prop.max_length:
        yield f"has more than {prop.max_length} characters"
    if prop.pattern is not None and not re.search(prop.pattern, str(value)):
        yield f"must be {prop.doc}"
    if prop.min_items is not None and len(value) < prop.min_items:
        yield f"needs {prop.min_items} or more"
    if prop.max_items is not None and len(value) > prop.max_items:
        yield f"takes at most {prop.max_items}"


def _is_a(kind: type, value: object) -> bool:
    if isinstance(value, bool):  # Python's bool is an int, JSON's is not
        return kind is bool
    return isinstance(value, kind) or (kind is float and isinstance(value, int))


def _shown(value: object) -> str:
    text = repr(list(value)) if isinstance(value, tuple) else repr(value)
    return text if len(text) <= VALUE_SHOWN_MAX else text[: VALUE_SHOWN_MAX - 1] + "…"
