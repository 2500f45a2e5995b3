"""Which locations are one place, or lie in each other."""

from __future__ import annotations

import pytest

from hudi_operator.api.locations import overlap
from hudi_operator.api.parsing import parse
from hudi_operator.api.table import HudiTableSpec
from tests.support.manifests import ingest, spec

TOGETHER = [
    ("s3://lake/flights", "s3a://lake/flights/"),
    ("s3://lake/flights", "s3://lake//flights/in"),
    ("s3://lake", "s3://lake/flights"),
    ("abfs://box@acc/t", "abfss://box@acc/t/in"),
    ("file:///data/t", "file://localhost/data/./t/in"),
    ("file:///data/t", "file:///data/x/../%74"),
]
APART = [
    ("s3://lake/flights", "s3://lake/flights-landing"),
    ("s3://lake/flights", "gs://lake/flights"),
    ("s3://lake/a", "s3://lake/%61"),
    ("s3://lake/flights", "s3://lakes/flights"),
    ("file:///data/t", "file:///data/t2"),
]


@pytest.mark.parametrize(("one", "other"), [(a, b) for a, b in TOGETHER] + [(b, a) for a, b in TOGETHER])
def test_places_are_compared_by_segments_however_they_are_written(one: str, other: str) -> None:
    assert overlap(one, other)
    source = ingest(source={"type": "Files", "path": other, "format": "json"})
    _, errors = parse(HudiTableSpec, spec(location=one, ingest=[source]), "spec")
    assert any("own location" in str(error) for error in errors)


@pytest.mark.parametrize(("one", "other"), APART)
def test_names_that_begin_alike_are_other_places(one: str, other: str) -> None:
    assert not overlap(one, other)
    assert not overlap(other, one)
