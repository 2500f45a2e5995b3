"""Golden tables: written by Apache Hudi 0.15.0, 1.0.2 and 1.1.1, with the rows that Hudi itself
returned (tests/data/golden/README.md and tests/data/golden-1.x/README.md)."""

from __future__ import annotations

import json
import re
import tarfile
from base64 import b64decode
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).resolve().parents[1] / "data" / "golden"
LATER_FOLDER = FOLDER.with_name("golden-1.x")
LATER = tuple(sorted(path.name.partition(".")[0] for path in LATER_FOLDER.glob("*.tar.xz")))
"""Those of table versions 8 and 9."""

COPY_ON_WRITE = (
    "arch",
    "bktcow",
    "cdc",
    "clust",
    "comp",
    "evo",
    "nometa",
    "nopart",
    "rb",
    "sem_Def_COPY",
    "tskg",
    "wide",
)
MERGE_ON_READ = (
    "bktcons",
    "bktmor",
    "failmor",
    "isdel",
    "lc",
    "mor1",
    "pqlog",
    "rbm",
    "sched",
    "sem_Def_MERG",
)

_PLAIN = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True, slots=True)
class Golden:
    """One unpacked golden table: its name and base path."""

    name: str
    base: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """What Hudi returned, by query."""
        folder = LATER_FOLDER if (LATER_FOLDER / f"{self.name}.json").exists() else FOLDER
        found: dict[str, Any] = json.loads((folder / f"{self.name}.json").read_text("utf-8"), parse_float=Decimal)
        return found

    def rows(self, query: str = "snapshot", *, schema_of: str = "") -> pa.Table:
        """What Hudi returned for `query` (`snapshot`, `read_optimized`, …), in Arrow types, meta
        columns first. `schema_of`: the query whose schema it is, if that of its own is not
        noted."""
        manifest = self.manifest
        schema = pa.schema([(name, arrow_type(text)) for name, text in manifest[f"{schema_of or query}_schema"]])
        rows = [{field.name: _value(row.get(field.name), field.type) for field in schema} for row in manifest[query]]
        return pa.Table.from_pylist(rows, schema=schema)


def unpack(name: str, into: Path) -> Golden:
    """Unpack the golden table `name` below the folder `into`."""
    with tarfile.open((LATER_FOLDER if name in LATER else FOLDER) / f"{name}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return Golden(name, into / name)


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a Spark type such as `array<struct<a:int,b:string>>`."""
    if text in _PLAIN:
        return _PLAIN[text]
    if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", text):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    kind, _, inner = text.removesuffix(">").partition("<")
    parts = _split(inner)
    if kind == "array":
        return pa.list_(arrow_type(inner))
    if kind == "map":
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    if kind == "struct":
        return pa.struct([(name, arrow_type(of)) for name, _, of in (part.partition(":") for part in parts)])
    raise ValueError(f"no Arrow type for the Spark type {text!r}")


def _split(text: str) -> list[str]:
    """Split at the commas that lie outside `<…>` and `(…)`."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(key, _value(item, kind.item_type)) for key, item in value.items()]
    if pa.types.is_list(kind):
        return [_value(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _value(value.get(field.name), field.type) for field in kind}
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value).astimezone(UTC)
    if pa.types.is_decimal(kind):
        return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale))
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_binary(kind):
        return b64decode(value)
    return value
