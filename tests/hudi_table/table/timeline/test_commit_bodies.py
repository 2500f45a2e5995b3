"""Bodies of completed writes: JSON in table version 6, Avro containers from version 8 on, whoever
wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.codec.avro.container import read_container
from hudi_table.model.table.layouts import layout_of
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import WRITE_ACTIONS, parse_instant
from hudi_table.table.timeline.layout import decode_commit, encode_commit
from tests.support import golden

TABLES = ("v8_cdc_mor", "v8_mor_logcompact", "v8_cow_hive", "v9_replace", "v9_bucket_mor", "v9_mor_sched")
WRITTEN = CommitMetadata(
    "UPSERT",
    (
        WriteStat("f-0", "p/a.parquet", "p", num_writes=3, extra={"minEventTime": 1, "maxEventTime": 2, "cdcStats": {"p/.a.cdc": 7}}),
        WriteStat("g-0", ".g-0_1.log.1_0-0-0", "", "2", extra={"logVersion": 1, "logOffset": 0, "baseFile": "", "logFiles": ["x"]}),
    ),
    {"schema": '{"type": "record"}', "empty": ""},
)  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_body_of_hudi_is_written_again_with_every_field_as_it_was(name: str, tmp_path: Path):
    base = golden.unpack(name, tmp_path).base
    seen = 0
    for file in sorted((base / ".hoodie" / "timeline").iterdir()):
        instant = parse_instant(file.name)
        if instant is None or not instant.completed or instant.action not in WRITE_ACTIONS:
            continue
        written = encode_commit(layout_of(9), decode_commit(file.read_bytes()))
        assert read_container(written) == read_container(file.read_bytes()), file.name
        schema = b"HoodieReplaceCommitMetadata" if file.name.endswith("replacecommit") else b"HoodieCommitMetadata"
        assert schema in written
        assert schema in file.read_bytes()
        seen += 1
    assert seen


@pytest.mark.parametrize("version", [6, 9])
def test_a_small_body_that_is_asked_for_again_is_not_parsed_again(version: int):
    data = encode_commit(layout_of(version), WRITTEN)
    assert decode_commit(data) is decode_commit(bytes(bytearray(data)))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_body_of_ours_is_read_as_it_was_written(version: int):
    for replaced in (None, {"": ("f-0",), "p": ()}):
        metadata = CommitMetadata(
            WRITTEN.operation_type, WRITTEN.stats, WRITTEN.extra_metadata, replaced, compacted=True
        )
        found = decode_commit(encode_commit(layout_of(version), metadata))
        assert found.extra_metadata == metadata.extra_metadata
        assert found.replaced == replaced
        assert found.compacted
        for read, stat in zip(sorted(found.stats, key=lambda stat: stat.file_id), metadata.stats, strict=True):
            assert {key: read.extra[key] for key in stat.extra} == stat.extra
            assert (read.file_id, read.path, read.partition_path) == (stat.file_id, stat.path, stat.partition_path)
            assert (read.prev_commit, read.num_writes) == (stat.prev_commit, stat.num_writes)


def test_a_changed_byte_of_an_avro_body_is_found():
    data = encode_commit(layout_of(9), WRITTEN)
    assert data == encode_commit(layout_of(9), WRITTEN)
    place = data.index(b"p/a.parquet")
    with pytest.raises(ValueError, match="check sum"):
        decode_commit(data[:place] + b"q" + data[place + 1 :])


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_decision_holds_the_body_that_it_publishes(version: int):
    data = encode_commit(layout_of(version), WRITTEN)
    entry = ChainEntry.of(Kind.COMMIT, "20261124000000000", "a", (), "20261124000000000.commit", data)
    assert ChainEntry.from_json(entry.to_json()).data == data
