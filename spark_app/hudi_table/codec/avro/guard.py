"""Avro schemas that come with the data they describe: checked before anything is read or built by
them.

fastavro recurses in C for each level, so that a record which holds itself can end the process; it
reads as many items of nothing as a count says; and a few names that repeat each other can spell
more fields than memory has. None of that is in a schema of Hudi.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hudi_table.model.json_text import parse_json

SCHEMAS_KEPT = 16
DEPTH_MAX = 128
FIELDS_MAX = 100_000
"""Types in a schema, those that a name repeats counted again."""
FIXED_BYTES_MAX = 1 << 20
_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})


def load_schema(text: str | bytes, *, sized: bool = False) -> Any:
    """The schema as JSON. `sized`: no record holds itself and every value takes a byte at least, so
    that what is read by it is no deeper than the schema and no count can promise more values than
    there are bytes.

    Raises ValueError for a schema that is too deep, too large or not `sized`; also for text that is
    no JSON.
    """
    found = parse_json(text)
    _Walk(sized).size(found, "", 0)
    return found


@lru_cache(SCHEMAS_KEPT)
def parsed_schema(text: str | bytes) -> Any:
    """A `sized` schema as fastavro reads by it: who is given it does not change it. A table's files
    of one kind all have the same. Raises ValueError, also for what fastavro takes for none."""
    import fastavro

    from hudi_table.codec.avro.names import for_fastavro

    document = load_schema(text, sized=True)
    try:
        return fastavro.parse_schema(for_fastavro(document))
    except fastavro.schema.SchemaParseException as error:
        raise ValueError(f"its schema is none: {error}") from error


@dataclass(slots=True)
class _Walk:
    """One look at a schema. `known`: how many types a name stands for; None while its own are
    counted."""

    sized: bool
    known: dict[str, int | None] = field(default_factory=dict)

    def size(self, kind: Any, space: str, depth: int) -> int:
        """How many types it spells out. Raises ValueError."""
        if depth > DEPTH_MAX:
            raise ValueError(f"its schema is nested deeper than {DEPTH_MAX}")
        if isinstance(kind, list):
            return self._bounded(1 + sum(self.size(each, space, depth + 1) for each in kind if each != "null"))
        if isinstance(kind, dict):
            return self._bounded(self._complex(kind, space, depth))
        if kind == "null" and self.sized:
            raise ValueError("its schema has values without bytes")
        return self._named(str(kind), space)

    def _complex(self, kind: dict[str, Any], space: str, depth: int) -> int:
        what = kind.get("type")
        if what in ("record", "error"):
            return self._record(kind, space, depth)
        if what == "array":
            return 1 + self.size(kind.get("items"), space, depth + 1)
        if what == "map":
            return 1 + self.size(kind.get("values"), space, depth + 1)
        if what == "fixed":
            least = 1 if self.sized else 0
            if not least <= int(kind.get("size", -1)) <= FIXED_BYTES_MAX:
                raise ValueError(f"its schema has a fixed of {kind.get('size')} bytes")
        if what in ("fixed", "enum"):
            self.known[_full(kind, space)[0]] = 1
            return 1
        return self.size(what, space, depth + 1)

    def _record(self, kind: dict[str, Any], space: str, depth: int) -> int:
        name, inner = _full(kind, space)
        self.known[name] = None
        fields = kind.get("fields") or []
        if self.sized and not fields:
            raise ValueError("its schema has values without bytes")
        count = 1 + sum(self.size(each["type"], inner, depth + 1) for each in fields)
        self.known[name] = count
        return count

    def _named(self, name: str, space: str) -> int:
        if name in _PRIMITIVES:
            return 1
        full = name if "." in name or not space else f"{space}.{name}"
        found = self.known.get(full, self.known.get(name, 0))
        if found is None and self.sized:
            raise ValueError(f"its schema has a record {name} that holds itself")
        return max(1, found or 0)

    @staticmethod
    def _bounded(count: int) -> int:
        if count > FIELDS_MAX:
            raise ValueError(f"its schema has more than {FIELDS_MAX} fields")
        return count


def _full(kind: dict[str, Any], space: str) -> tuple[str, str]:
    """(full name, the namespace that holds inside) of a named type."""
    name = str(kind.get("name", ""))
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = str(kind.get("namespace") or space)
    return (f"{inner}.{name}" if inner else name), inner
