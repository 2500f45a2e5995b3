"""Declared fields: one declaration gives the parser, the defaults, the limits and the OpenAPI
schema.

A resource part is a frozen dataclass whose fields are made by `prop`. Supported types: `str`,
`int`, `float`, `bool`, `StrEnum`, other parts, `tuple[X, ...]`, `dict[str, str]`, `dict[str, Any]`
(an object that only the API server judges), and `X | None` for optional ones. Field names are
snake_case here and camelCase in documents.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Union

RULES = "RULES"
_JSON_TYPES: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclasses.dataclass(frozen=True, slots=True)
class Prop:
    """What a schema says about one field. Lengths in characters; `list_key` makes a list a map by
    that field, `unique` a set."""

    doc: str
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    list_key: str | None = None
    format: str | None = None
    item_max_length: int | None = None
    unique: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A rule over several fields of a part: as CEL for the API server, and as a function of the
    parsed part.

    `path` is the field to blame, relative to the part ('' is the part itself). A rule whose CEL
    names `oldSelf` compares an update with what was there; its `holds` is None, because without an
    API server the table itself is compared.
    """

    cel: str
    message: str
    path: str
    holds: Callable[[Any], bool] | None


def prop(doc: str, default: Any = dataclasses.MISSING, **limits: Any) -> Any:
    """A field with its documentation, default and limits (the fields of `Prop`). A mapping or part
    default is copied."""
    metadata = {"prop": Prop(doc, **limits)}
    if isinstance(default, type) or callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


_ACRONYMS = {"ttl": "TTL"}


@cache
def camel(name: str) -> str:
    """`record_key` → `recordKey`, `partition_ttl` → `partitionTTL`: an acronym keeps one case."""
    head, *rest = name.split("_")
    return head + "".join(_ACRONYMS.get(word, word.capitalize()) for word in rest)


@cache
def fields_of(cls: type) -> Mapping[str, dataclasses.Field[Any]]:
    """The fields of a part by their names in documents."""
    return {camel(field.name): field for field in dataclasses.fields(cls)}


@cache
def hints(cls: type) -> Mapping[str, Any]:
    """Resolved types of a part's fields."""
    return typing.get_type_hints(cls)


@cache
def bare_hints(cls: type) -> Mapping[str, Any]:
    """The same, `X` for `X | None`."""
    return {name: bare(hint) for name, hint in hints(cls).items() if name != RULES}


def prop_of(field: dataclasses.Field[Any]) -> Prop:
    """What `prop` recorded."""
    found: Prop = field.metadata["prop"]
    return found


def is_optional(hint: Any) -> bool:
    """Whether a type is `X | None`."""
    return isinstance(hint, types.UnionType) or typing.get_origin(hint) is Union


def bare(hint: Any) -> Any:
    """`X` of `X | None`, else the type itself."""
    return next(a for a in typing.get_args(hint) if a is not type(None)) if is_optional(hint) else hint


def default_of(field: dataclasses.Field[Any]) -> Any:
    """The default value, or `dataclasses.MISSING` for a required field."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def rules_of(cls: type) -> tuple[Rule, ...]:
    """The rules over several fields that a part declares."""
    return getattr(cls, RULES, ())


@cache
def _names(cls: type) -> tuple[tuple[str, str], ...]:
    """(name in documents, name here) of each field of a part; nothing of what is no part."""
    return tuple((camel(f.name), f.name) for f in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else ()


def to_document(value: Any) -> Any:
    """Plain JSON values of a part: camelCase, without fields that are None."""
    if value is None or type(value) in _JSON_TYPES:
        return value
    names = _names(typing.cast("type", type(value)))
    if names:
        pairs = ((name, getattr(value, field)) for name, field in names)
        return {name: to_document(item) for name, item in pairs if item is not None}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [to_document(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_document(item) for key, item in value.items()}
    return value


def openapi(cls: type) -> dict[str, Any]:
    """The structural OpenAPI v3 schema of a part, with its CEL rules."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    if cls.__doc__:
        schema = {"description": " ".join(cls.__doc__.split()), **schema}
    required = []
    for field in dataclasses.fields(cls):
        hint, default = hints(cls)[field.name], default_of(field)
        name = camel(field.name)
        schema["properties"][name] = _property(hint, prop_of(field), default)
        if default is dataclasses.MISSING:
            required.append(name)
    if required:
        schema["required"] = required
    if rules_of(cls):
        schema["x-kubernetes-validations"] = [_cel(rule) for rule in rules_of(cls)]
    return schema


def _cel(rule: Rule) -> dict[str, Any]:
    found = {"rule": rule.cel, "message": rule.message}
    # fieldPath must name an existing property and may not pass through list items.
    return found | ({"fieldPath": f".{rule.path}"} if rule.path else {})


def _property(hint: Any, prop: Prop, default: Any) -> dict[str, Any]:
    schema = {"description": prop.doc, **_typed(bare(hint), prop)}
    limits = {
        "minimum": prop.minimum,
        "maximum": prop.maximum,
        "minLength": prop.min_length,
        "maxLength": prop.max_length,
        "pattern": prop.pattern,
        "minItems": prop.min_items,
        "maxItems": prop.max_items,
        "format": prop.format,
    }
    schema |= {name: limit for name, limit in limits.items() if limit is not None}
    if default is not dataclasses.MISSING and default is not None:
        # In full: the API server judges a default by the rules of its part before it fills in the defaults inside.
        schema["default"] = to_document(default)
    return schema


def _typed(hint: Any, prop: Prop) -> dict[str, Any]:
    if dataclasses.is_dataclass(hint):
        return {key: value for key, value in openapi(typing.cast("type", hint)).items() if key != "description"}
    origin = typing.get_origin(hint)
    if origin is tuple:
        item = _typed(typing.get_args(hint)[0], Prop(""))
        if prop.item_max_length is not None:
            item["maxLength"] = prop.item_max_length
        if prop.list_key:
            return {
                "type": "array",
                "items": item,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": [prop.list_key],
            }
        return {"type": "array", "items": item, "x-kubernetes-list-type": "set" if prop.unique else "atomic"}
    if origin is dict and typing.get_args(hint)[1] is Any:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if origin is dict:
        value: dict[str, Any] = {"type": _JSON_TYPES[typing.get_args(hint)[1]]}
        if prop.item_max_length is not None:
            value["maxLength"] = prop.item_max_length
        limit = {"maxProperties": prop.max_items} if prop.max_items is not None else {}
        return {"type": "object", "additionalProperties": value, **limit}
    if issubclass(hint, StrEnum):
        return {"type": "string", "enum": [member.value for member in hint]}
    return {"type": _JSON_TYPES[hint]}
