"""Upserts whose rows do not come in order: rows with a lower ordering value than the stored one,
and flagged deletes (`_hoodie_is_deleted`), as far as a dictionary can say what becomes of them.

What becomes of others on merge-on-read follows from where they lie, in a log or in a base file, and
is pinned by other tests: in version 6 by commit time what is older than a log entry (case 19 of
docs/reference/compatibility.md) and by event time a flagged delete that is older than the row (case
21); by event time a row of a key that was deleted, which a flagged delete or a row of the base file
may still beat. Omitted: an ordering value of 0, at which a flagged delete in a log is one by
operation.
"""

from __future__ import annotations

import random

import pyarrow as pa

from hudi_table.model.names import IS_DELETED
from tests.interop.model import Model
from tests.interop.turns import Kind

LATE = 0.35
FLAGGED = 0.25
"""How many rows of an upsert are late, and how many are flagged."""


def with_flags(schema: pa.Schema) -> pa.Schema:
    """The schema with the column that flags deletes."""
    return schema.append(pa.field(IS_DELETED, pa.bool_()))


def unflagged(data: pa.Table) -> pa.Table:
    """The rows with a flag each that says that they are none."""
    at = data.schema.get_field_index(IS_DELETED)
    return data.set_column(at, data.schema.field(at), pa.array([False] * len(data), pa.bool_()))


def disordered(chance: random.Random, data: pa.Table, model: Model, kind: Kind) -> pa.Table:
    """The rows of an upsert, some of them late, some of them flagged, some both."""
    rows = data.to_pylist()
    for row in rows:
        late, row[IS_DELETED] = chance.random() < LATE, chance.random() < FLAGGED
        stored = model.found.get(row["id"])
        if late and _may_be_late(row, model, kind):
            newest = stored["ts"] if stored else row["ts"]
            row["ts"] = chance.randint(1, max(1, newest - 1))
    return pa.Table.from_pylist(rows, schema=data.schema)


def _may_be_late(row: dict[str, object], model: Model, kind: Kind) -> bool:
    if not kind.logs:
        return True
    if model.by_event_time:
        return row["id"] in model.found and not (kind.version == 6 and row[IS_DELETED])
    return kind.version > 6
