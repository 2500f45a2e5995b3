"""What an ingest does where the columns of its source are not those of its table."""

from __future__ import annotations

from enum import StrEnum


class SchemaPolicy(StrEnum):
    """The strictest first: each takes all that those before it take."""

    REFUSE = "Refuse"
    ADD_COLUMNS = "AddColumns"
    WIDEN = "Widen"
