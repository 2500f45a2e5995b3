"""Resources as `kubectl get` prints them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from hudi_operator.plan.status.report import human_duration
from hudi_operator.runtime.local.printing import render, value_at
from tests.support.manifests import manifest, stored

NOW = datetime(2026, 1, 1, 5, 30, tzinfo=UTC)
STATUS = {
    "conditions": [
        {"type": "Fresh", "status": "False"},
        {"type": "Ready", "status": "True", "reason": "TableReadable"},
    ],
    "data": {"records": 336776, "files": 24},
    "timeline": {"lastInstant": "20260101050000000"},
    "ingest": [{"name": "feed", "lag": "12s"}],
    "lag": "12s",
}
TABLE = stored(manifest(type="CopyOnWrite", location="s3://lake/flights"), status=STATUS)


def test_a_table_reads_as_kubectl_prints_it() -> None:
    assert render("table", [TABLE], NOW).splitlines() == [
        "NAME      TYPE          READY   RECORDS   FILES   LAST INSTANT        FRESH   REASON          AGE",
        "flights   CopyOnWrite   True    336776    24      20260101050000000   False   TableReadable   5h30m",
    ]


def test_wide_shows_the_rest() -> None:
    head, line = render("wide", [TABLE], NOW).splitlines()
    assert "LAG" in head
    assert "12s" in line
    assert "s3://lake/flights" in line


def test_kinds_are_printed_apart_and_absent_values_are_blank() -> None:
    service = stored(manifest("nightly", "TableService", tableRef={"name": "flights"}, type="Cleaning"))
    text = render("table", [TABLE, service], NOW)
    assert text.split("\n\n")[1].splitlines()[1].split() == ["nightly", "flights", "Cleaning", "5h30m"]


def test_documents_are_printed_whole() -> None:
    assert json.loads(render("json", [TABLE], NOW))["items"] == [TABLE]
    assert yaml.safe_load(render("yaml", [TABLE], NOW))["items"] == [TABLE]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".data.files", 24),
        (".ingest[0].lag", "12s"),
        (".ingest[1].lag", None),
        ('.conditions[?(@.type=="Ready")].status', "True"),
        ('.conditions[?(@.type=="Other")].status', None),
        (".absent.deeper", None),
    ],
)
def test_paths_of_columns_are_found(path: str, value: object) -> None:
    assert value_at(STATUS, path) == value


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=59), "59s"),
        (timedelta(minutes=5, seconds=12), "5m12s"),
        (timedelta(hours=2), "2h"),
        (timedelta(days=3, hours=4, minutes=5), "3d4h"),
        (timedelta(seconds=-5), "0s"),
    ],
)
def test_ages_have_two_units(span: timedelta, text: str) -> None:
    assert human_duration(span) == text
