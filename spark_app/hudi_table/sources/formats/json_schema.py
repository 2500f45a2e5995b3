"""JSON objects, one a message, with the id of their schema in a registry before them: what a JSON
Schema says of types decides, what it does not say is inferred as of other JSON.

Facts: Confluent's framing is a zero byte, the id in four bytes, the greatest first, and the text.
`$ref` names a place in the same document (`#/definitions/City`), or another one by the name of a
reference or by its `$id`. `format` is a note for readers: `date-time` is RFC 3339. A schema lets
through properties that it does not name unless it says otherwise; no message is checked against it.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.errors import InvalidDataError
from hudi_table.model.bounded import Bounded
from hudi_table.model.digits import is_digits
from hudi_table.sources.formats.avro import FRAME, SCHEMAS_MAX, by_schema
from hudi_table.sources.formats.columns import cut
from hudi_table.sources.formats.decoder import Judge
from hudi_table.sources.formats.json import is_text, read_objects

PARTS_MAX, DEPTH_MAX = 20_000, 60
"""Of a schema: a few that refer to each other could say more than any memory holds."""
MOMENT = pa.timestamp("us", tz="UTC")
_NUMBERS = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
_FORMATS = {"date-time": MOMENT, "date": pa.date32()}
Documents = tuple[Any, Mapping[str, Any]]
"""A schema, and those that it refers to, by the names under which it does."""


class JsonRegistryDecoder:
    """Objects whose schemas a registry has: `documents_of` brings those of an id, and raises
    InvalidDataError where there is none. `judge`: of each schema alone; `columns`: types that are
    asked for, whatever a schema says."""

    def __init__(
        self, documents_of: Callable[[int], Documents], judge: Judge | None = None, columns: pa.Schema | None = None
    ) -> None:
        self._documents_of = documents_of
        self._judge = judge
        self._asked = columns if columns is not None else pa.schema([])
        self._columns: Bounded[int, pa.Schema] = Bounded(SCHEMAS_MAX)

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. Messages of several schemas are one table with the union of their
        columns."""

        def read(number: int, some: Sequence[bytes]) -> tuple[pa.Table, pa.Schema]:
            said = self._of(number)
            rows = self._read(said, some, known)
            return rows, _come(rows, said)

        return by_schema(messages, known, self._judge, read)

    def _read(self, said: pa.Schema, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        ends = np.cumsum(lengths)
        texts = cut(pa.py_buffer(b"".join(messages)), ends - lengths + FRAME, ends)
        said = pa.schema([each for each in said if each.name not in self._asked.names] + list(self._asked))
        return read_objects(texts, _asked(said, known), _is_text)

    def _of(self, number: int) -> pa.Schema:
        known = self._columns.get(number)
        if known is None:
            name = f"schema {number} of the registry"
            known = self._columns[number] = columns_of(self._documents_of(number), name)
        return known


def _come(rows: pa.Table, said: pa.Schema) -> pa.Schema:
    """The columns that a schema says, and what its messages have beyond: what the table alone has
    was read for its type."""
    kept = [f for f in rows.schema if f.name in said.names or rows.column(f.name).null_count < len(rows)]
    return pa.schema(kept)


def _is_text(kind: pa.DataType) -> bool:
    """Moments come with more digits than a column holds."""
    return is_text(kind) or bool(pt.is_timestamp(kind) and kind.tz is not None)


def columns_of(documents: Documents, name: str) -> pa.Schema:
    """The columns whose types a schema says, all of them nullable. Raises InvalidDataError, by the
    schema's `name`, for one of no object, and for one that cannot be followed."""
    try:
        kind = _Schema(*documents).kind()
    except ValueError as error:
        raise InvalidDataError(f"{name} is no JSON Schema of an object that can be stored: {error}") from error
    return pa.schema(list(kind) if kind is not None else [])


@dataclass(slots=True)
class _Place:
    """A part of a document, and the document."""

    node: Any
    of: Any


@dataclass(slots=True)
class _Schema:
    """A schema as it is read; a kind is None where it says none."""

    root: Any
    named: Mapping[str, Any]
    _ids: dict[str, _Place] = field(default_factory=dict)
    _parts: int = 0

    def __post_init__(self) -> None:
        for document in (self.root, *self.named.values()):
            for base, node in _identified(document, ""):
                self._ids.setdefault(base, _Place(node, document))

    def kind(self) -> pa.DataType | None:
        """Of the whole. Raises ValueError."""
        found = self._kind(_Place(self.root, self.root), ())
        types = _types(self.root)
        if (found is not None and not pt.is_struct(found)) or (types and "object" not in types):
            raise ValueError(f"it is of type {', '.join(sorted(types)) or found}")
        return found

    def _kind(self, at: _Place, above: tuple[int, ...]) -> pa.DataType | None:
        """Of a part; `above`: the parts that it lies in. What holds itself says nothing there."""
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise ValueError(f"it has more than {PARTS_MAX:,} parts")
        node = at.node
        if not isinstance(node, Mapping) or id(node) in above or len(above) > DEPTH_MAX:
            return None
        above = (*above, id(node))
        found = [self._own(at, above)]
        if isinstance(node.get("$ref"), str):
            found.append(self._kind(self._referred(node["$ref"], at), above))
        found += [self._kind(_Place(part, at.of), above) for part in _listed(node.get("allOf"))]
        found += [self._one_of(_listed(node.get(key)), at, above) for key in ("anyOf", "oneOf")]
        return _all_of(kind for kind in found if kind is not None)

    def _own(self, at: _Place, above: tuple[int, ...]) -> pa.DataType | None:
        """What the type says."""
        node, types = at.node, _types(at.node)
        if types == {"integer", "number"}:
            types = {"number"}
        if not types and isinstance(node.get("properties"), Mapping):
            types = {"object"}
        if len(types) != 1:
            return None
        (name,) = types
        if name == "string":
            return _FORMATS.get(str(node.get("format")), pa.string())
        if name == "array":
            item = self._kind(_Place(node.get("items"), at.of), above)
            return pa.list_(item) if item is not None else None
        if name != "object":
            return _NUMBERS.get(name)
        properties = node.get("properties")
        kinds = {
            str(key): self._kind(_Place(each, at.of), above)
            for key, each in (properties.items() if isinstance(properties, Mapping) else ())
        }
        return _struct({key: kind for key, kind in kinds.items() if kind is not None})

    def _one_of(self, parts: Sequence[Any], at: _Place, above: tuple[int, ...]) -> pa.DataType | None:
        kinds = [self._kind(_Place(part, at.of), above) for part in parts if not _is_null(part)]
        if not kinds:
            return None
        first = kinds[0]
        for kind in kinds[1:]:
            first = _either(first, kind)
        return first

    def _referred(self, reference: str, at: _Place) -> _Place:
        """What `$ref` names. Raises ValueError where nothing has that name."""
        name, _, fragment = reference.partition("#")
        there = at.of
        if name:
            base = str(at.of.get("$id", "")) if isinstance(at.of, Mapping) else ""
            whole = urllib.parse.urljoin(base, name)
            if name in self.named:
                there = self.named[name]
            elif whole in self.named:
                there = self.named[whole]
            elif whole in self._ids:
                there = self._ids[whole].node
            else:
                raise ValueError(f"it refers to {name[:200]!r}, which the registry does not name for it")
        if fragment and not fragment.startswith("/"):
            found = next((node for node in _nodes(there) if _anchor(node) == fragment), None)
        else:
            found = _pointed(there, urllib.parse.unquote(fragment))
        if found is None:
            raise ValueError(f"it refers to {reference[:200]!r}, which is not there")
        return _Place(found, there)


def _types(node: Any) -> set[str]:
    """The types that a part may have, null left out."""
    found = node.get("type") if isinstance(node, Mapping) else None
    return {str(each) for each in (found if isinstance(found, list) else [found])} - {"null", "None"}


def _is_null(node: Any) -> bool:
    return isinstance(node, Mapping) and (node.get("type") in ("null", ["null"]) or node.get("enum") == [None])


def _listed(node: Any) -> list[Any]:
    return node if isinstance(node, list) else []


def _struct(kinds: Mapping[str, pa.DataType]) -> pa.DataType | None:
    return pa.struct(list(kinds.items())) if kinds else None


def _fields(kind: pa.DataType) -> dict[str, pa.DataType]:
    return {each.name: each.type for each in kind}


def _all_of(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """What holds all that several parts say of one value; None where they say different things."""
    found: pa.DataType | None = None
    for kind in kinds:
        if found is None or found == kind:
            found = kind
        elif pt.is_struct(found) and pt.is_struct(kind):
            first, second = _fields(found), _fields(kind)
            both = {name: _all_of((first[name], second[name])) for name in first if name in second}
            found = _struct({n: k for n, k in {**first, **second, **both}.items() if k is not None})
        else:
            return None
    return found


def _either(first: pa.DataType | None, second: pa.DataType | None) -> pa.DataType | None:
    """What holds the values of either, None where nothing is said that does."""
    if first is None or second is None or first == second:
        return first if first == second else None
    if pt.is_struct(first) and pt.is_struct(second):
        left, right = _fields(first), _fields(second)
        both = {name: _either(left[name], right[name]) for name in left if name in right}
        return _struct({n: k for n, k in {**left, **right, **both}.items() if k is not None})
    if {first, second} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.string() in (first, second) and {first, second} <= {pa.string(), MOMENT, pa.date32()}:
        return pa.string()
    return None


def _nodes(document: Any) -> Iterator[Mapping[str, Any]]:
    """Every object of a document."""
    left = [document]
    while left:
        node = left.pop()
        if isinstance(node, Mapping):
            yield node
            left += node.values()
        elif isinstance(node, list):
            left += node


def _anchor(node: Mapping[str, Any]) -> str:
    found = node.get("$anchor") or node.get("$id")
    return found.removeprefix("#") if isinstance(found, str) else ""


def _identified(document: Any, base: str) -> Iterator[tuple[str, Any]]:
    """(id, part) of every part that has one, resolved by that of the document."""
    base = str(document.get("$id", base)) if isinstance(document, Mapping) else base
    for node in _nodes(document):
        if isinstance(node.get("$id"), str) and not node["$id"].startswith("#"):
            yield urllib.parse.urljoin(base, node["$id"]).partition("#")[0], node


def _pointed(document: Any, pointer: str) -> Any:
    """The part that a JSON pointer names, None where there is none."""
    node = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping):
            node = node.get(name)
        elif isinstance(node, list) and is_digits(name) and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node


def _asked(said: pa.Schema, known: pa.Schema | None) -> pa.Schema:
    """The types that messages are read in: those of the table where they hold what the schema says,
    and of properties that it does not name."""
    fields = {each.name: each.type for each in said}
    have = {each.name: each.type for each in known} if known is not None else {}
    kinds = {name: _read_as(have.get(name), kind) for name, kind in fields.items()}
    rest = {name: kind for name, kind in have.items() if name not in kinds}
    return pa.schema(list({**kinds, **rest}.items()))


def _read_as(have: pa.DataType | None, said: pa.DataType) -> pa.DataType:
    if have is None:
        return said
    if pt.is_struct(have) and pt.is_struct(said):
        return pa.struct(list(_asked(pa.schema(list(said)), pa.schema(list(have)))))
    if pt.is_list(have) and pt.is_list(said):
        return pa.list_(_read_as(have.value_type, said.value_type))
    return have if any(test(have) for test in _HOLDS.get(said, ())) else said


_WORDS = (pt.is_string, pt.is_large_string)
_HOLDS: Mapping[pa.DataType, tuple[Callable[[pa.DataType], bool], ...]] = {
    pa.int64(): (pt.is_integer, pt.is_floating, pt.is_decimal),
    pa.float64(): (pt.is_floating, pt.is_decimal),
    pa.bool_(): (pt.is_boolean,),
    MOMENT: (pt.is_timestamp, *_WORDS),
    pa.date32(): (pt.is_date, *_WORDS),
    pa.string(): (pt.is_timestamp, pt.is_date, pt.is_time, pt.is_binary, pt.is_decimal, *_WORDS),
}
"""Columns that hold what the parser reads of a type."""
