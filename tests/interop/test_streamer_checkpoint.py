"""Checkpoints of Hudi Streamer of Hudi 1.x, on tables of version 8 and 9.

Hudi Streamer itself cannot be had of these releases: neither the bundle of its utilities nor their
bare jar stands where the bundles for Spark do (looked for: 1.0.2, 1.1.1, 1.2.0; its turns with an
ingest are taken by 0.14.0, `tests/streams/test_streamer.py`). But the bundle for Spark has the
classes that it reads and records a checkpoint by, `CheckpointUtils` and `StreamerCheckpointV2`, and
they are asked here. What the jar alone says is read in its source, of 1.1.1
(`StreamerCheckpointUtils.resolveCheckpointBetweenConfigAndPrevCommit`,
`StreamSync.extractCheckpointMetadata`): it takes the newest commit that has
`streamer.checkpoint.key.v2`, `streamer.checkpoint.reset.key.v2`, `deltastreamer.checkpoint.key` or
`deltastreamer.checkpoint.reset_key`, of a merge-on-read table the newest such deltacommit; reads it
by `getCheckpoint`; begins at its `--checkpoint` unless the commit records the same text; and
records by `getCheckpointCommitMetadata`. The text is `topic,partition:offset,…` as in 0.14.0
(`KafkaOffsetGen.CheckpointUtils`).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.arguments import TableTypeName
from hudi_table.model.job.positions import Positions, TopicPositions
from hudi_table.services.ingesting import Ingest
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import current_positions
from tests.interop.conftest import Hudis
from tests.support.hudi_oracle import StreamerCheckpoint

pytestmark = pytest.mark.interop
THEIRS = StreamerCheckpoint("orders,0:8,1:7", "orders,0:3,1:0", "monday")


def rows(number: int) -> pa.Table:
    return pa.table({"id": [f"k{number}"], "n": pa.array([number], pa.int64())})


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("version", [8, 9])
def test_a_job_of_hudi_1x_and_an_ingest_go_on_from_each_others_commits(
    version: int, kind: TableTypeName, tmp_path: Path, hudis: Hudis
) -> None:
    base = f"file://{tmp_path}/orders"
    index = {"type": "Bucket", "buckets": 1}
    table = create_table(base, rows(0).schema, record_key="id", type=kind, version=version, index=index)
    table.upsert(rows(0), extra_metadata={"streamer.checkpoint.key.v2": "orders,0:0,1:0"})
    hudi = hudis["1.1.1"]
    _, recorded = hudi.checkpoint(tmp_path / "orders", THEIRS)
    table.upsert(rows(1), extra_metadata=recorded)
    assert hudi.checkpoint(tmp_path / "orders", THEIRS)[0] == THEIRS

    context = open_table(base).context
    held = current_positions(context, "feed", "orders")
    assert held is not None
    assert dict(held.positions.topics["orders"].offsets) == {0: 8, 1: 7}
    reached = Positions("", {"orders": TopicPositions("", {0: 9, 1: 7})})
    Ingest("feed", "orders", "upsert", {}).commit(context, Rows(rows(2).schema, rows(2).to_reader(), reached, 1), held)
    found, _ = hudi.checkpoint(tmp_path / "orders", THEIRS)
    assert found == StreamerCheckpoint("orders,0:9,1:7", THEIRS.reset, THEIRS.ignored)
