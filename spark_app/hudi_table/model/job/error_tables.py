"""Which table beside an ingest's own keeps what it refuses. Operator and jobs go by the same
words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MESSAGES, RECORDS, ROWS = "_errors", "_kinesis_errors", "_row_errors"
"""How its location ends: of Kafka, of Kinesis, of any other source."""
_SUFFIXES = {"Kafka": MESSAGES, "Debezium": MESSAGES, "Kinesis": RECORDS}
_QUARANTINE = "Quarantine"


def quarantines(ingest: Mapping[str, Any]) -> bool:
    """Whether an ingest sends rows to an error table; not where it is no ingest that anybody would
    take."""
    steps = [each for name in ("expectations", "transform") for each in _listed(ingest.get(name))]
    found = (each.get("onFail") for each in steps if isinstance(each, Mapping))
    return _QUARANTINE in (ingest.get("onUndecodable"), *found)


def error_location(location: str, suffix: str) -> str:
    """Where the error table of a table at `location` lies."""
    return location.rstrip("/") + suffix


def error_locations(spec: Mapping[str, Any]) -> set[str]:
    """Where the error tables of a HudiTable lie; nothing of what is wrong in its manifest."""
    location = spec.get("location")
    ingests = (each for each in _listed(spec.get("ingest")) if isinstance(each, Mapping) and quarantines(each))
    sources = (each.get("source") for each in ingests)
    types = {str(each.get("type")) for each in sources if isinstance(each, Mapping)}
    return {error_location(location, _SUFFIXES.get(each, ROWS)) for each in types if isinstance(location, str)}


def _listed(found: object) -> list[Any]:
    return found if isinstance(found, list) else []
