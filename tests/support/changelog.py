"""Logs as Flink writes them with `changelog.enabled`: each row tells its operation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from hudi_table.codec.log.blocks import BlockType, LogBlock, scan_blocks
from hudi_table.codec.log.rows import avro_block, read_rows
from hudi_table.model.names import OPERATION_COLUMN, RECORD_KEY


def blocks_of(path: Path) -> list[tuple[LogBlock, pa.Table]]:
    """The data blocks of a log with their rows."""
    with path.open("rb") as source:
        found = [
            block for block in scan_blocks(source, path=str(path)) if block.type in (BlockType.AVRO, BlockType.PARQUET)
        ]
        return [(block, read_rows(source, block)) for block in found]


def tell_operations(base: Path, operations: Mapping[str, str]) -> None:
    """Write the newest log of each of these keys again, with the operation of their rows (`I`,
    `-U`, `U`, `D`)."""
    newest: dict[str, Path] = {}
    for path in sorted(base.rglob(".*.log.*"), key=lambda item: item.stat().st_mtime_ns):
        for key in operations:
            if any(key in rows[RECORD_KEY].to_pylist() for _, rows in blocks_of(path)):
                newest[key] = path
    assert newest.keys() == operations.keys()
    for path in set(newest.values()):
        data = b"".join(_told(block, rows, operations) for block, rows in blocks_of(path))
        path.write_bytes(data)


def _told(block: LogBlock, rows: pa.Table, operations: Mapping[str, str]) -> bytes:
    at = rows.schema.get_field_index(OPERATION_COLUMN)
    before = zip(rows[RECORD_KEY].to_pylist(), rows[OPERATION_COLUMN].to_pylist(), strict=True)
    told = pa.array([operations.get(key, operation) for key, operation in before], pa.string())
    assert block.schema is not None
    return avro_block(rows.set_column(at, OPERATION_COLUMN, told), block.schema, block.instant)
