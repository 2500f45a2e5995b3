"""The parts that the spec of a resource is made of."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from hudi_operator.api import schema


def parts(*roots: type) -> Iterator[type]:
    """Every part below some, themselves included."""
    for part in roots:
        yield part
        for field in dataclasses.fields(part):
            for hint in _inner(schema.hints(part)[field.name]):
                if dataclasses.is_dataclass(hint):
                    yield from parts(typing.cast("type", hint))


def _inner(hint: Any) -> list[Any]:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is tuple:
        return [inner for argument in typing.get_args(hint) for inner in _inner(argument)]
    return [hint] if isinstance(hint, type) and not issubclass(hint, StrEnum) else []
