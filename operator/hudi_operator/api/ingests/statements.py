"""`source.sql` of an ingest: the answer of a statement over other Hudi tables."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.fields.patterns import DURATION, LOCATION
from hudi_operator.api.ingests.databases import EVERY, IncrementalSpec
from hudi_operator.api.schema import prop

TABLES_MAX = 16


@dataclass(frozen=True, slots=True)
class NamedTableSpec:
    """A Hudi table, whoever writes it. It is read with the credentials of
    storage.credentialsSecretRef."""

    name: str = prop("name in the statement", pattern="^[A-Za-z_][A-Za-z0-9_]*$", min_length=1, max_length=64)
    location: str = prop("where it is, as a URI such as s3://lake/orders", pattern=LOCATION, max_length=1024)


@dataclass(frozen=True, slots=True)
class SqlSpec:
    """One SELECT over Hudi tables, each read in one state. It is asked when one of them has another
    commit."""

    query: str = prop("one SELECT, in DuckDB's SQL, over the tables by their names", min_length=1, max_length=16384)
    tables: tuple[NamedTableSpec, ...] = prop(
        "what the statement may read", min_items=1, max_items=TABLES_MAX, list_key="name"
    )
    incremental: IncrementalSpec | None = prop("rows by a column of the answer that grows; absent: all rows", None)
    every: str = prop("how often the tables are looked at", EVERY, pattern=DURATION, max_length=32)
