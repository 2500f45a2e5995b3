"""`docs/reference/resources.md` and `docs/reference/services.md` speak of every field, condition
and reason that a person may meet."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hudi_operator.api.fields.maintenance import MaintenanceSpec
from hudi_operator.api.fields.sections import (
    ArchivingSpec,
    CleaningSpec,
    ClusteringSpec,
    DefinedIndexSpec,
    IndexFunction,
    IndexingSpec,
    IndexKind,
    Layout,
    MetadataPartition,
    Need,
    PartitionTTLSpec,
    RepairSpec,
    SavepointSpec,
    UpgradeSpec,
)
from hudi_operator.api.ingests.ingest import IngestSpec
from hudi_operator.api.schema import camel
from hudi_operator.api.service import ConcurrencyPolicy, RunMode, TableServiceSpec
from hudi_operator.api.status import PlanStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.plan.schedule.runs import RETRYABLE
from hudi_table.model.service.services import ServiceType

DOCS = Path(__file__).resolve().parents[3] / "docs" / "reference"
TEXT = (DOCS / "resources.md").read_text()
SERVICES = (DOCS / "services.md").read_text()


def test_every_field_of_a_table_and_of_an_ingest_is_described() -> None:
    fields = {camel(f.name) for part in (HudiTableSpec, IngestSpec) for f in dataclasses.fields(part)}
    assert not {name for name in fields if name not in TEXT}


def test_every_error_that_is_repeated_is_named() -> None:
    assert not {name for name in RETRYABLE if f"`{name}`" not in TEXT}


def test_every_field_type_mode_and_figure_of_a_service_is_described() -> None:
    sections = (
        ArchivingSpec, CleaningSpec, ClusteringSpec, DefinedIndexSpec, IndexingSpec, Need, PartitionTTLSpec, RepairSpec, SavepointSpec,
        UpgradeSpec,
    )  # fmt: skip
    names = {camel(f.name) for part in (TableServiceSpec, PlanStatus, *sections) for f in dataclasses.fields(part)}
    names |= {
        member.value
        for kinds in (ServiceType, RunMode, ConcurrencyPolicy, Layout, MetadataPartition, IndexKind, IndexFunction)
        for member in kinds
    }
    assert not {name for name in names if name not in SERVICES} - {"made", "stale"}


def test_every_service_of_the_maintenance_is_described() -> None:
    names = {camel(f.name) for f in dataclasses.fields(MaintenanceSpec)}
    assert not {name for name in names if f"| `{name}` |" not in TEXT}
