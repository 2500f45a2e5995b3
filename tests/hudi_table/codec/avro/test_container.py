"""Avro containers of the timeline: those of Hudi are read, ours have Hudi's schemas.

Aspects: every Avro body in the golden tables; writing what recoveries need; damage. Not here: what
the records mean.
"""

from __future__ import annotations

import io
import json
from importlib import resources
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hudi_table.codec.avro.container import read_container, write_container
from tests.support.golden import COPY_ON_WRITE, MERGE_ON_READ, unpack

NAMES = sorted(
    entry.name.removesuffix(".avsc") for entry in resources.files("hudi_table.codec").joinpath("avsc").iterdir()
)
ROLLBACK_PLAN: dict[str, Any] = {
    "instantToRollback": {"commitTime": "20240102030405678", "action": "commit"},
    "RollbackRequests": [
        {
            "partitionPath": "p",
            "fileId": "f-0",
            "latestBaseInstant": "20240102030405678",
            "filesToBeDeleted": ["/base/p/f-0_0-1-2_20240102030405678.parquet"],
            "logBlocksToBeDeleted": {},
        }
    ],
    "version": 1,
}


def containers_of(base: Path) -> list[Path]:
    return [
        path for path in sorted((base / ".hoodie").glob("*.*")) if path.is_file() and path.read_bytes()[:3] == b"Obj"
    ]


def schema_name(body: bytes) -> str:
    return str(json.loads(fastavro.reader(io.BytesIO(body)).metadata["avro.schema"])["name"])


@pytest.mark.parametrize("name", COPY_ON_WRITE + MERGE_ON_READ)
def test_every_container_on_a_timeline_of_hudi_holds_one_record_that_can_be_written_again(
    name: str, tmp_path: Path
) -> None:
    for path in containers_of(unpack(name, tmp_path).base):
        body = path.read_bytes()
        (record,) = read_container(body)
        if (kind := schema_name(body)) in NAMES:
            assert read_container(write_container(kind, record)) == [record]


def test_the_golden_tables_hold_a_container_of_each_schema_that_we_write(tmp_path: Path) -> None:
    met = {
        schema_name(path.read_bytes())
        for name in COPY_ON_WRITE + MERGE_ON_READ
        for path in containers_of(unpack(name, tmp_path).base)
    }
    # Commits are JSON in version 6; lists of deleted keys, archived instants and records of the metadata table lie in log blocks and HFiles, without a container;
    # none of these tables was being indexed.
    elsewhere = {
        "HoodieDeleteRecordList",
        "HoodieArchivedMetaEntry",
        "HoodieMetadataRecord",
        "HoodieMetadataRecordLater",
        "HoodieMetadataRecordOf10",
    }
    elsewhere |= {"HoodieCommitMetadata", "HoodieReplaceCommitMetadata"}
    # The index of a bootstrap lies in HFiles.
    elsewhere |= {"HoodieBootstrapFilePartitionInfo", "HoodieBootstrapIndexInfo", "HoodieBootstrapPartitionMetadata"}
    assert set(NAMES) - elsewhere - {"HoodieIndexPlan", "HoodieIndexCommitMetadata"} <= met


def test_a_container_has_one_record_uncompressed_under_the_schema_of_hudi() -> None:
    body = write_container("HoodieRollbackPlan", ROLLBACK_PLAN)
    reader = fastavro.reader(io.BytesIO(body))
    assert reader.metadata.get("avro.codec", "null") == "null"
    assert json.loads(reader.metadata["avro.schema"])["name"].endswith("HoodieRollbackPlan")
    assert read_container(body) == [ROLLBACK_PLAN]


def test_absent_nullable_fields_take_their_defaults() -> None:
    (record,) = read_container(write_container("HoodieRequestedReplaceMetadata", {}))
    assert record["clusteringPlan"] is None
    assert record["version"] == 1


@pytest.mark.parametrize("size", [0, 3, 40, -1, -17])
def test_a_cut_container_is_refused(size: int) -> None:
    body = write_container("HoodieRollbackPlan", ROLLBACK_PLAN)
    with pytest.raises(ValueError, match="not an Avro container"):
        read_container(body[:size])


@pytest.mark.parametrize("body", [b"{}", b"Obj\x01" + b"\xff" * 40, b"Obj\x01\x00" + b"\0" * 40])
def test_bytes_that_are_no_container_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not an Avro container"):
        read_container(body)
