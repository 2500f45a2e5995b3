"""What is given to public calls: an argument of another type than its name stands for is refused by
name, before anything is done.

An argument means the same in every call that has it, so one table says of each name what it takes.
What a value must be beside its type, the call itself says.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from numbers import Integral
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from hudi_table.errors import InvalidOptionError

Call = ParamSpec("Call")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type[Any])


def _text(value: object) -> bool:
    return isinstance(value, str)


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _version(value: object) -> bool:
    return _text(value) or _whole(value)


def _bytes(value: object) -> bool:
    return isinstance(value, Integral) and _whole(value) and int(value) > 0


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _some(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _findings(value: object) -> bool:
    return _some(value) and (not isinstance(value, list | tuple) or all(hasattr(each, "check") for each in value))


def _texts(value: object) -> bool:
    # What can be gone through once is left to the call.
    return _some(value) and (not isinstance(value, list | tuple | set | frozenset) or all(map(_text, value)))


def _names(value: object) -> bool:
    return isinstance(value, str | list | tuple) and all(map(_text, value))


def _fields(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(not isinstance(each, list | tuple) and _fields(each) for each in value)
    return isinstance(value, str | Mapping) or hasattr(value, "field")


def _index(value: object) -> bool:
    return isinstance(value, str | Mapping) or hasattr(value, "buckets")


def _mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _pairs(value: object) -> bool:
    return isinstance(value, Mapping) and all(_text(key) and _text(each) for key, each in value.items())


def _steps(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, Mapping) for each in value)


def _moment(value: object) -> bool:
    return isinstance(value, str | date)


def _engine(value: object) -> bool:
    return callable(getattr(value, "map", None))


def _location(value: object) -> bool:
    return isinstance(value, str | PathLike)


def _table(value: object) -> bool:
    return _location(value) or hasattr(value, "context")


_Kind = tuple[Callable[[object], bool], str]
_FLAG: _Kind = (_flag, "True or False")
_KINDS: Mapping[str, _Kind] = {
    "uri": (_location, "a path or a URI"),
    "source_version": (_version, "a text or a whole number"),
    **dict.fromkeys(("table_or_uri", "table"), (_table, "an opened table, a path or a URI")),
    # Their own gates say more of a key or a value that is no text.
    **dict.fromkeys(("options", "extra_metadata"), (_mapping, "a dict of texts by key")),
    **dict.fromkeys(("storage_options", "source_options", "lock"), (_pairs, "a dict of texts by key")),
    **dict.fromkeys(
        (
            "operation", "batch", "sort_mode", "type", "merge_mode", "partial_updates", "merger", "key_generator", "name", "database", "if_exists",
            "query", "images", "instant", "column", "metric", "savepoint", "plan", "comment", "time", "attempt",
            "format", "catalog", "duplicates", "mode", "pattern",
        ),
        (_text, "a text"),
    ),
    **dict.fromkeys(("version", "to", "buckets", "limit", "k"), (_whole, "a whole number")),
    "max_memory": (_bytes, "a whole number of bytes, at least 1"),
    **dict.fromkeys(("hive_style", "url_encode"), _FLAG),
    **dict.fromkeys(("partitions", "indexes", "lost", "readers", "roots", "drop"), (_texts, "a list of texts")),
    "columns": (_texts, "a list of names"),
    **dict.fromkeys(("record_key", "ordering_fields"), (_names, "a name or a list of names")),
    "partition_by": (_fields, "one or several names, or {'field': …, 'type': …}"),
    "index": (_index, "the name of an index, or {'type': …}"),
    "findings": (_findings, "findings, as doctor() returns them"),
    "transform": (_steps, "a list of steps, each a dict"),
    **dict.fromkeys(("as_of", "since", "until"), (_moment, "an instant, an ISO date or time, a date or a datetime")),
    "progress": (callable, "a function of one argument"),
    "engine": (_engine, "an engine, such as LocalEngine()"),
}  # fmt: skip
_SHOWN_MAX = 100


def check_given(name: str, value: object, default: object = inspect.Parameter.empty) -> None:
    """Refuse an argument of a public call whose type is none that its name stands for; its default
    is always taken. Raises InvalidOptionError."""
    kind = _FLAG if isinstance(default, bool) else _KINDS.get(name)
    if kind is None or value is default or kind[0](value):
        return
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_MAX else f"of type {type(value).__name__}"
    raise InvalidOptionError(f"{name} is {shown}: give {kind[1]}")


def checked_call(call: Callable[Call, Result]) -> Callable[Call, Result]:
    """The call, which first checks what it is given."""
    signature = inspect.signature(call)
    defaults = {name: each.default for name, each in signature.parameters.items()}

    @functools.wraps(call)
    def checked(*args: Call.args, **more: Call.kwargs) -> Result:
        try:
            given = signature.bind(*args, **more).arguments
        except TypeError:
            # Too many, too few or strange ones: Python's own words, with the call's name.
            return call(*args, **more)
        for name, value in given.items():
            check_given(name, value, defaults[name])
        return call(*args, **more)

    return checked


def checked_calls(of: Class) -> Class:
    """The class with every public method that it defines checked, and `__call__`."""
    for name, call in list(vars(of).items()):
        if inspect.isfunction(call) and (name == "__call__" or not name.startswith("_")):
            setattr(of, name, checked_call(call))
    return of
