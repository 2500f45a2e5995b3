"""Golden tables of versions 8 and 9 continued by us: what is written on them, and what they hold
then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.api import HudiTable, open_table, write_hudi
from hudi_table.model.table.config import TableConfig, TableType

DOUBLED = {"v9_evo": {("k001",)}}
"""Keys that a golden table holds twice: Hudi's second write put them into another file group."""
_BUCKETS = {"v8_bucket_cons": 2, "v8_nbcc": 1, "v9_nbcc": 1, "v9_bucket_mor": 2}
"""Of tables with a bucket index, which no Hudi table stores."""
STEP = 1_000_000
"""By which ordering values of an update are greater."""


def index_options(name: str) -> dict[str, str]:
    """What a writer of the golden table has to be told of its index."""
    if name not in _BUCKETS:
        return {"hoodie.index.type": "SIMPLE"}
    engine = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"} if name == "v8_bucket_cons" else {}
    return {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(_BUCKETS[name]), **engine}


Keyed = dict[tuple[Any, ...], list[dict[str, Any]]]


def keyed(rows: pa.Table, config: TableConfig) -> Keyed:
    """The rows by partition and key: in `DOUBLED` tables two of a key, of two file groups."""
    found: Keyed = {}
    for row in rows.to_pylist():
        found.setdefault(tuple(row[name] for name in _names(config)), []).append(row)
    return {key: sorted(several, key=repr) for key, several in found.items()}


def _names(config: TableConfig) -> list[str]:
    return [*config.partition_fields, *config.record_key]


def upserted(have: Keyed, rows: pa.Table, config: TableConfig) -> Keyed:
    """What an upsert makes of the rows: both of a key that is there twice are written again."""
    return have | {key: row * len(have.get(key, row)) for key, row in keyed(rows, config).items()}


def expected_after(base: Path) -> Keyed:
    """What the table holds once `continued` has written on it."""
    table = open_table(base)
    rows, config = table.scan().to_arrow(), table.context.config
    have = keyed(rows, config)
    assert {key for key, several in have.items() if len(several) > 1} == DOUBLED.get(base.name, set())
    updates, gone = _changes(rows, config)
    after = upserted(have, updates, config)
    return {key: row for key, row in after.items() if key not in keyed(gone, config)}


def continued(base: Path) -> HudiTable:
    """Upsert two rows, delete one, compact the table or cluster it, and clean it."""
    table = open_table(base)
    options, config = index_options(base.name), table.context.config
    for plan in table.pending_clusterings():
        table.run_clustering(plan)
    updates, gone = _changes(table.scan().to_arrow(), config)
    write_hudi(base, updates, operation="upsert", options=options)
    names = list(dict.fromkeys([*config.record_key, *config.partition_fields, *config.ordering_fields]))
    write_hudi(base, gone.select(names), operation="delete", options=options)
    table = open_table(base)
    assert _rewritten(table, options)
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    return table


def _rewritten(table: HudiTable, options: Mapping[str, str]) -> object:
    if table.context.config.type is TableType.MERGE_ON_READ:
        return table.compact(force=True)
    return table.cluster(options={}, force=True) if options["hoodie.index.type"] == "SIMPLE" else True


def _changes(rows: pa.Table, config: TableConfig) -> tuple[pa.Table, pa.Table]:
    """Two rows that are written again, and one that is deleted: the first ones by their keys."""
    rows = rows.sort_by([(name, "ascending") for name in (*_names(config), *config.ordering_fields)])
    keys = [tuple(row.values()) for row in rows.select(_names(config)).to_pylist()]
    rows = rows.take([place for place, key in enumerate(keys) if key not in keys[:place]])
    updates = rows.slice(0, 2)
    for name in config.ordering_fields:
        updates = _set(updates, name, pc.add(updates.column(name), STEP))
    return _set(updates, "name", pa.chunked_array([["once more"] * len(updates)])), rows.slice(2, 1)


def _set(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    field = rows.schema.field(name)
    return rows.set_column(rows.schema.get_field_index(name), field, values.cast(field.type))
