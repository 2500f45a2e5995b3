"""Documents without an error → typed parts, by readers that are put together once for each class of
part.

Nearly every document that an operator parses is right, and a reconcile parses several. A reader
says nothing of what is wrong: it gives up, and `parsing` finds every error. Both judge alike;
tests/hudi_operator/api/test_reading.py holds them to that.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from hudi_operator.api.schema import Prop, bare_hints, default_of, fields_of, prop_of, rules_of

T = TypeVar("T")
Reader = Callable[[Any], Any]
"""A value of a document → that of a part. Raises NotRightError."""


class NotRightError(Exception):
    """The document has an error, or may have one."""


def read(cls: type[T], raw: object) -> T | None:
    """The part of class `cls` that a document describes, or None if there may be an error in it."""
    try:
        found: T = _part(typing.cast("type", cls))(raw)
    except NotRightError:
        return None
    return found


@cache
def _part(cls: type) -> Reader:
    types, fields = bare_hints(cls), fields_of(cls)
    known = frozenset(fields)
    readers = [(name, f.name, _limited(types[f.name], prop_of(f)), _default(f)) for name, f in fields.items()]
    rules = [rule.holds for rule in rules_of(cls) if rule.holds is not None]

    def part(raw: Any) -> Any:
        if type(raw) is not dict or not known.issuperset(raw):
            raise NotRightError
        values = {}
        for name, field, reader, default in readers:
            value = raw.get(name)
            values[field] = default() if value is None else reader(value)
        found = cls(**values)
        if not all(holds(found) for holds in rules):
            raise NotRightError
        return found

    return part


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    """What makes the value of a field that is not there."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    value = default_of(field)

    def default() -> Any:
        if value is dataclasses.MISSING:
            raise NotRightError
        return value

    return default


def _limited(hint: Any, prop: Prop) -> Reader:
    """A reader that holds to the limits of its field."""
    reader, limits = _value(hint, prop), _limits(prop)
    if not limits:
        return reader

    def limited(raw: Any) -> Any:
        value = reader(raw)
        if not all(keeps(value) for keeps in limits):
            raise NotRightError
        return value

    return limited


def _value(hint: Any, prop: Prop) -> Reader:
    if dataclasses.is_dataclass(hint):
        return _part(typing.cast("type", hint))
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _list(typing.get_args(hint)[0], prop)
    if origin is dict:
        return _map(typing.get_args(hint)[1])
    return _member(hint) if issubclass(hint, StrEnum) else _scalar(hint)


def _member(hint: type[StrEnum]) -> Reader:
    members = {member.value: member for member in hint}

    def member(raw: Any) -> Any:
        if type(raw) is not str or raw not in members:
            raise NotRightError
        return members[raw]

    return member


def _scalar(hint: type) -> Reader:
    kinds = (float, int) if hint is float else (hint,)

    def scalar(raw: Any) -> Any:
        if type(raw) not in kinds:
            raise NotRightError
        return raw

    return scalar


def _list(item: Any, prop: Prop) -> Reader:
    reader, key = _value(item, Prop(prop.doc)), prop.list_key
    if prop.item_max_length is not None and isinstance(item, type) and issubclass(item, str):
        reader = _limited(item, Prop(prop.doc, max_length=prop.item_max_length))

    def items(raw: Any) -> Any:
        if type(raw) is not list:
            raise NotRightError
        found = tuple(map(reader, raw))
        if key and len({str(value.get(key)) for value in raw}) < len(raw):
            raise NotRightError
        if prop.unique and len(set(found)) < len(found):
            raise NotRightError
        return found

    return items


def _map(item: Any) -> Reader:
    reader = _scalar(item) if item is not Any else _as_it_is

    def entries(raw: Any) -> Any:
        if type(raw) is not dict:
            raise NotRightError
        return {str(key): reader(value) for key, value in raw.items()}

    return entries


def _as_it_is(raw: Any) -> Any:
    return raw


def _limits(prop: Prop) -> list[Callable[[Any], object]]:
    """What a value must be, one thing after the other."""
    least, most = prop.minimum, prop.maximum
    shortest = max((each for each in (prop.min_length, prop.min_items) if each is not None), default=None)
    longest = min((each for each in (prop.max_length, prop.max_items) if each is not None), default=None)
    search = re.compile(prop.pattern).search if prop.pattern is not None else None
    checks: list[Callable[[Any], object]] = []
    if least is not None:
        checks.append(lambda value: value >= least)
    if most is not None:
        checks.append(lambda value: value <= most)
    if shortest is not None:
        checks.append(lambda value: len(value) >= shortest)
    if longest is not None:
        checks.append(lambda value: len(value) <= longest)
    if search is not None:
        checks.append(lambda value: search(str(value)))
    return checks
