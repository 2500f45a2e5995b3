"""`docs/resources.md` speaks of every field, condition and reason that a person may meet."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hudi_operator.api.schema import camel
from hudi_operator.api.table import HudiTableSpec, IngestSpec
from hudi_operator.plan.runs import RETRYABLE

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "resources.md").read_text()


def test_every_field_of_a_table_and_of_an_ingest_is_described() -> None:
    fields = {camel(f.name) for part in (HudiTableSpec, IngestSpec) for f in dataclasses.fields(part)}
    assert not {name for name in fields if name not in TEXT} - {"schedule"}


def test_every_error_that_is_repeated_is_named() -> None:
    assert not {name for name in RETRYABLE if f"`{name}`" not in TEXT}
