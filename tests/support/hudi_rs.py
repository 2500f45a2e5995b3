"""hudi-rs, the Rust reader of Hudi tables, through its Python package."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa


def read(base: Path | str, **options: str) -> pa.Table:
    """The table's snapshot rows as hudi-rs reads them, meta columns included."""
    from hudi import HudiTableBuilder

    table = HudiTableBuilder.from_base_uri(str(base)).with_options(options).build()
    batches = table.read()
    schema = pa.schema(table.get_schema_with_meta_fields()) if not batches else pa.schema(batches[0].schema)
    return pa.Table.from_batches([pa.record_batch(batch) for batch in batches], schema=schema)
