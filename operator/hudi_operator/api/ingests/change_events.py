"""`source.debezium` of an ingest: how change events of a database are read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hudi_operator.api.ingests.databases import Infinite
from hudi_operator.api.schema import prop


class OnTruncate(StrEnum):
    """What becomes of rows whose table is emptied."""

    REFUSE = "Refuse"
    DELETE = "Delete"
    IGNORE = "Ignore"


@dataclass(frozen=True, slots=True)
class DebeziumSpec:
    """Change events of a database."""

    infinite: Infinite = prop("a date or timestamp that is infinite cannot be read, or is null", Infinite.REFUSE)
    on_truncate: OnTruncate = prop(
        "where the database empties its table: end the ingest, delete all rows that are older, or keep them",
        OnTruncate.REFUSE,
    )
