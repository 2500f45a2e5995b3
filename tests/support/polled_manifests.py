"""Manifests of ingests whose sources are asked: files that are followed, ranges, rows that are left
out; and what is refused about them."""

from __future__ import annotations

from typing import Any

from tests.support.kafka_manifests import DATABASE, FILES, custom, jdbc, notified, table
from tests.support.manifests import ingest

FOLLOWED_FILES = {"mode": "Continuous", "commitInterval": "5s"}
POLLED_GOOD = [
    table(ingest=[ingest(source={**FILES, "maxBytes": "1Gi"}, freshness="5m", **FOLLOWED_FILES)]),
    table(ingest=[ingest(source={**FILES, "maxBytes": "1Gi"})]),
    table(ingest=[ingest(source=notified()[1]["ingest"][0]["source"], **FOLLOWED_FILES)]),
]
POLLED_BAD = [
    (
        table(ingest=[ingest(source={"type": "Jdbc", "jdbc": DATABASE, "maxBytes": "1Gi"})]),
        "maxBytes belongs to type Files",
    ),
    (table(ingest=[ingest(source={**FILES, "maxBytes": "much"})]), "maxBytes"),
    (table(ingest=[ingest(source=FILES, freshness="5m")]), "freshness goes with"),
    (
        table(ingest=[ingest(source=notified()[1]["ingest"][0]["source"], freshness="5m", **FOLLOWED_FILES)]),
        "freshness goes with",
    ),
    (table(ingest=[ingest(source=FILES, activeDeadline="1h", **FOLLOWED_FILES)]), "activeDeadline does not go with"),
]
POLLED_GOOD += [
    table(ingest=[ingest(operation="Insert", dropDuplicates=True)]),
    table(ingest=[ingest(dropDuplicates=False)]),
]
POLLED_GOOD += [custom({"engine": "Spark", "transform": [{"flatten": {}}]})]
POLLED_GOOD += [jdbc({"engine": "Spark", "transform": [{"flatten": {}}, {"function": "shop.clean"}]})]
POLLED_BAD += [
    (table(ingest=[ingest(dropDuplicates=True)]), "dropDuplicates goes with operation Insert"),
    (table(ingest=[ingest(operation="BulkInsert", dropDuplicates=True)]), "dropDuplicates goes with operation Insert"),
]


def ranged(kind: str, within: dict[str, Any] | None = None, /, **of_ingest: Any) -> tuple[str, dict[str, Any]]:
    """An ingest of mode Backfill of a range."""
    sources: dict[str, dict[str, Any]] = {
        "Files": FILES,
        "Jdbc": {"type": "Jdbc", "jdbc": {**DATABASE, "incremental": {"column": "at"}}},
        "Hudi": {"type": "Hudi", "hudi": {"location": "s3://lake/orders"}},
        "Kinesis": {"type": "Kinesis", "format": "json", "kinesis": {"stream": "orders"}},
        "Custom": {"type": "Custom", "custom": {"name": "shop.api"}},
    }
    asked = {"until": "2026-02-01T00:00:00Z"} if within is None else within
    return table(ingest=[ingest(**{"source": {**sources[kind], "range": asked}, "mode": "Backfill", **of_ingest})])


POLLED_GOOD += [
    ranged("Files"),
    ranged("Files", {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00+01:00"}),
    ranged("Files", {"since": "2026/01", "until": "2026/02", "by": "Name"}),
    ranged("Jdbc", {"since": "7", "until": "9"}),
    ranged("Hudi", {"until": "20260101000000000"}),
    ranged("Kinesis", {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"}),
]
POLLED_BAD += [
    (ranged("Files", mode="Once"), "no other mode has one"),
    (ranged("Files", {}), "until"),
    (ranged("Files", {"until": "2026-02-01"}), "are moments such as"),
    (ranged("Files", operation="Insert"), "mode Backfill goes with operation Upsert"),
    (ranged("Jdbc", {"until": "9", "by": "Name"}), "range.by Name belongs to type Files"),
    (ranged("Custom"), "others have no range"),
    (ranged("Kinesis", {"until": "soon"}), "are moments such as"),
    (
        ranged(
            "Kinesis",
            source={
                "type": "Kinesis",
                "format": "json",
                "kinesis": {"stream": "orders", "startFrom": {"position": "Latest"}},
                "range": {"until": "2026-02-01T00:00:00Z"},
            },
        ),
        "leave kinesis.startFrom out",
    ),
    (
        ranged("Jdbc", source={"type": "Jdbc", "jdbc": DATABASE, "range": {"until": "9"}}),
        "or Jdbc with incremental",
    ),
    (
        ranged("Files", source={**notified()[1]["ingest"][0]["source"], "range": {"until": "2026-02-01T00:00:00Z"}}),
        "type Files without notifications",
    ),
    (
        ranged(
            "Hudi",
            source={"type": "Hudi", "hudi": {"location": "s3://lake/o", "deletes": "Delete"}, "range": {"until": "2"}},
        ),
        "an old delete could take a newer row",
    ),
    (jdbc({"mode": "Backfill"}, incremental={"column": "at"}), "mode Backfill needs kafka.endAt, or source.range"),
]
