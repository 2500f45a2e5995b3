"""Delta tables with what `deltalake` reads and does not write: deletion vectors, mapped columns.

Format facts: the Delta protocol's "Deletion Vector Format" (an inline vector is Z85 of a magic
number, a count of bitmaps, and 32-bit Roaring bitmaps each behind its high bits).
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def with_deleted(folder: Path, rows: pa.Table, deleted: list[int]) -> None:
    """A Delta table of one file, in which a vector deletes the rows of these numbers."""
    write_deltalake(folder, rows, configuration={"delta.enableDeletionVectors": "true"})
    log = folder / "_delta_log"
    actions = [json.loads(line) for line in (log / "00000000000000000000.json").read_text().splitlines()]
    (added,) = (each["add"] for each in actions if "add" in each)
    vector = _vector(deleted)
    packed = {
        "storageType": "i",
        "pathOrInlineDv": _z85(vector + b"\0" * (-len(vector) % 4)),
        "sizeInBytes": len(vector),
        "cardinality": len(deleted),
    }
    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    lines = [{"add": {**added, "deletionVector": packed}}, {"remove": removed}]
    (log / "00000000000000000001.json").write_text("\n".join(map(json.dumps, lines)))


def with_mapped_columns(folder: Path, rows: pa.Table) -> None:
    """A Delta table whose files name its columns `col-0`, `col-1` and so on."""
    names = {name: f"col-{number}" for number, name in enumerate(rows.schema.names)}
    write_deltalake(folder, rows.rename_columns(list(names.values())))
    log = folder / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (metadata,) = (each["metaData"] for each in actions if "metaData" in each)
    schema = json.loads(metadata["schemaString"])
    for number, (name, field) in enumerate(zip(names, schema["fields"], strict=True), 1):
        mapped = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": names[name]}
        field.update(name=name, metadata=mapped)
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(names))}
    changed = {**metadata, "schemaString": json.dumps(schema), "configuration": configuration}
    lines = [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": changed}]
    (log.parent / "00000000000000000001.json").write_text("\n".join(map(json.dumps, lines)))


def _vector(rows: list[int]) -> bytes:
    container = struct.pack(f"<{len(rows)}H", *rows)
    bitmap = struct.pack("<II", 12346, 1) + struct.pack("<HHI", 0, len(rows) - 1, 16) + container
    return struct.pack("<IqI", 1681511377, 1, 0) + bitmap


def _z85(data: bytes) -> str:
    text = ""
    for at in range(0, len(data), 4):
        value = int.from_bytes(data[at : at + 4], "big")
        digits = [value // 85**power % 85 for power in (4, 3, 2, 1, 0)]
        text += "".join(_Z85[digit] for digit in digits)
    return text
