"""A table in one row, of documents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hudi_operator.cli.kubectl.verb_status import columns
from hudi_operator.plan.status import overview
from hudi_table.cli.output import Document
from tests.support.manifests import manifest, spec, stored

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)


def condition(kind: str, status: str, reason: str = "R") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": "m"}


def table(*conditions: dict[str, Any], name: str = "flights", suspend: bool = False, **status: Any) -> dict[str, Any]:
    found = {"observedGeneration": 1, "conditions": list(conditions), **status}
    return stored(manifest(name, **spec(suspend=suspend)), status=found)


READY = condition("Ready", "True", "TableReadable")


@pytest.mark.parametrize(
    ("document", "health"),
    [
        (table(READY), "Ready"),
        (table(READY, suspend=True), "Suspended"),
        (table(READY, condition("Stalled", "True")), "Stalled"),
        (table(READY, observedGeneration=0), "Outdated"),
        (table(condition("Ready", "False", "NoTable")), "Empty"),
        (table(condition("Ready", "False", "Ingesting")), "Starting"),
        (table(condition("Ready", "False", "Retrying")), "NotReady"),
        (table(condition("Ready", "Unknown", "Unavailable")), "Unknown"),
        (stored(manifest(**spec())), "NotSeen"),
    ],
)
def test_health_is_one_word_and_the_worst_decides(document: dict[str, Any], health: str) -> None:
    assert overview.health(document) == health


def test_debts_are_a_few_words_each() -> None:
    found = table(
        *(condition(kind, "False") for kind in ("Compacted", "WellSized", "Archived")),
        condition("Clean", "False", "FailedWrites"),
        condition("MetadataTable", "False", "SwitchedOff"),
        condition("ResizeNeedsApproval", "True"),
        condition("UpgradeNeedsApproval", "True"),
        condition("ReadersServed", "False"),
        data={"logBytes": 2 << 30, "smallFileRatio": "0.62"},
        timeline={"files": 812},
    )
    assert list(overview.debts(found)) == [
        "2.0 GiB of logs", "62% small files", "failed writes", "812 timeline files", "no metadata table", "resize wanted",
        "upgrade wanted", "a reader is lost",
    ]  # fmt: skip
    assert list(overview.debts(table(READY, condition("MetadataTable", "True", "Kept")))) == []


def test_advice_is_a_few_words() -> None:
    index = {"type": "Bloom", "advice": ["a whole sentence"], "instant": "20260101005500000"}
    assert list(overview.advice(table(READY, index=index))) == ["index Bloom: see why"]
    assert list(overview.advice(table(READY, index={**index, "better": "Simple"}))) == ["index Simple"]
    assert list(overview.advice(table(READY, index={**index, "advice": []}))) == []
    row = overview.row(table(READY, index={**index, "better": "Simple"}), [], NOW)
    head, line = Document("TableStatusList", columns(everywhere=False), [row]).render("wide").splitlines()
    assert line[head.index("ADVISED") :].startswith("index Simple  ")


def test_people_see_it_as_a_table() -> None:
    runs = [{"name": "r1", "work": "Ingest/feed", "phase": "Running", "started": "2026-01-01T00:59:48Z"}]
    first = table(
        READY,
        condition("Compacted", "False"),
        timeline={"lastTime": "2026-01-01T00:55:00Z", "lastInstant": "20260101005500000"},
        data={"records": 336776, "files": 24, "bytes": 12345678, "logBytes": 5 << 20},
        ingest=[{"name": "feed", "pendingFiles": 3, "lag": "5m"}],
        runs=runs,
    )
    body = manifest("shrink", "TableService", tableRef={"name": "flights"}, type="Clustering", mode="Plan")
    service = stored(body, status={"plan": {"digest": "3f2a91bc00112233", "why": "asked for"}})
    rows = [overview.row(each, [service], NOW) for each in (first, table(condition("Stalled", "True"), name="planes"))]
    assert Document("TableStatusList", columns(everywhere=False), rows).render("table") == (
        "TABLE     HEALTH    LAST COMMIT   WAITING   RECORDS       SIZE   DEBT              AT WORK           TO APPROVE\n"
        "flights   Ready              5m   3 files   336,776   11.8 MiB   5.0 MiB of logs   Ingest/feed 12s   shrink\n"
        "planes    Stalled             -   0 files         -          -   -                 -                 -\n"
    )
