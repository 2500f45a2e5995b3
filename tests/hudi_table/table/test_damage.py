"""Damage of one kind each: it ends in a named error that says the file, and in a finding of the
doctor, never in rows that are wrong."""

from __future__ import annotations

import dataclasses
import json

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.codec.avro.container import read_container, write_container
from hudi_table.codec.hfile import HFile, write_hfile
from hudi_table.codec.log.blocks import INSTANT_TIME, SCHEMA, BlockType, encode_block
from hudi_table.errors import CorruptTableError, HudiError
from hudi_table.metadata.validate import differences
from hudi_table.model.service.findings import Check
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.seals import sealed, unsealed
from tests.support.crashes import LAYOUTS, LOG_LAYOUTS, opened, prepared
from tests.support.damaged import found
from tests.support.written import contents, new_table, rows, slices

ROWS = rows(("a", "x", 1), ("b", "x", 2))


def with_a_delete() -> tuple[HudiTable, str]:
    """A table whose only log deletes a row, and the path of that log."""
    table = new_table(type="MergeOnRead", partitioned=False)
    table.upsert(ROWS)
    table.delete(pa.table({"id": ["a"]}))
    return table, slices(table)[0].logs[0].path


@pytest.mark.parametrize("junk", [lambda data: b"\x17" * len(data), lambda _: b"", lambda data: data[: len(data) // 2]])
def test_a_log_that_a_commit_accounts_for_does_not_bring_deleted_rows_back(junk) -> None:
    table, log = with_a_delete()
    store = table.context.storage
    store.put(log, junk(store.get(log)))
    with pytest.raises(CorruptTableError, match=r"log .* is damaged: it .*, and the commit \d+ wrote rows there"):
        contents(table)
    with pytest.raises(CorruptTableError, match="is damaged"):
        table.upsert(rows(("b", "x", 3)))
    assert [finding.path for finding in found(table, Check.DAMAGED_LOG)] == [log]
    assert found(table, Check.INCOMPLETE, keys=True)


def test_a_block_of_ours_with_another_byte_in_its_rows_is_no_block() -> None:
    table = new_table(type="MergeOnRead", partitioned=False)
    table.upsert(ROWS)
    table.upsert(rows(("a", "x", 9)))
    store, log = table.context.storage, slices(table)[0].logs[0].path
    store.put(log, store.get(log).replace(b"\x02\x02x", b"\x02\x02y"))
    with pytest.raises(CorruptTableError, match="its check sum is wrong"):
        contents(table)


def test_what_a_write_left_that_did_not_complete_is_no_damage() -> None:
    table, log = with_a_delete()
    store = table.context.storage
    torn = encode_block(BlockType.AVRO, {INSTANT_TIME: "20200101000000000", SCHEMA: "{}"}, b"rows")[:-3]
    store.put(log.replace(".log.1_", ".log.2_"), torn)
    assert contents(table) == [("b", "x", 2)]
    # Nor is it behind the bytes of a commit in the same log, where Hudi appends.
    store.put(log, store.get(log) + torn)
    assert contents(table) == [("b", "x", 2)]


def test_an_hfile_whose_trailer_has_another_length_or_count_is_not_empty() -> None:
    data = write_hfile(pa.array(["a", "b"]), pa.array([b"1", b"2"]), schema='"bytes"')
    start = len(data) - 4096 + 8
    for place in range(start, start + 40):
        changed = bytearray(data)
        for bit in range(8):
            changed[place] = data[place] ^ (1 << bit)
            try:
                file = HFile.open(pa.BufferReader(bytes(changed)), path="f")
                keys = file.lookup(pa.array(["a"]))["key"].to_pylist()
            except HudiError:
                continue
            assert keys == [b"a"], (place - start, bit)


@pytest.mark.parametrize("field", ["numWrites", "fileSizeInBytes", "path"])
@pytest.mark.parametrize("value", ["text", 1.5, [1], {"a": 1}, True])
def test_numbers_and_texts_of_odd_types_are_no_commit_metadata(field: str, value: object) -> None:
    if field == "path" and value == "text":
        return
    stat = {"fileId": "f", "path": "p", field: value}
    with pytest.raises(ValueError, match=field):
        CommitMetadata.from_json(json.dumps({"partitionToWriteStats": {"": [stat]}}).encode())


def test_a_chain_entry_after_which_nothing_can_come_is_damage() -> None:
    table = new_table(partitioned=False)
    table.upsert(ROWS)
    store = table.context.storage
    last = max(info.path for info in store.list(".hoodie/.txn") if info.path.endswith(".json"))
    entry = ChainEntry.from_json(store.get(last))
    late = dataclasses.replace(entry, instant="99991231235959999", max_instant="99991231235959999")
    store.put(last[:-6] + "9.json", late.to_json())
    with pytest.raises(CorruptTableError, match=r"9\.json cannot be read: no instant can come after 99991231235959999"):
        opened(store).upsert(ROWS)
    store.delete(last[:-6] + "9.json")
    store.put(".hoodie/99991231235959999.commit", b"{}")
    with pytest.raises(CorruptTableError, match="no instant can come after 99991231235959999"):
        opened(store).upsert(ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '"x"',
        '{"touches": 3}',
        '{"touches": [], "kind": "commit", "instant": "5"}',
        '{"touches": [], "kind": "commit", "instant": 5, "attempt": "a"}',
    ],
)
def test_a_chain_entry_of_another_shape_is_damage(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is no entry|it lacks 'attempt'|a value of it is no text"):
        ChainEntry.from_json(text.encode())


def test_a_chain_entry_of_a_newer_release_is_told_by_what_it_has() -> None:
    table = new_table(partitioned=False)
    table.upsert(ROWS)
    store = table.context.storage
    last = max(info.path for info in store.list(".hoodie/.txn") if info.path.endswith(".json"))
    raw = json.loads(unsealed(store.get(last)))
    store.put(last, sealed(json.dumps(raw | {"lease": "7"}).encode()))
    with pytest.raises(
        CorruptTableError, match=r"it has 'lease', which this release does not know: a newer release wrote it"
    ):
        opened(store).upsert(ROWS)


def test_seals_tell_a_changed_document_and_take_one_without() -> None:
    entry = ChainEntry(Kind.COMMIT, "20260101000000000", "a", ("x",), max_instant="20260101000000000")
    data = entry.to_json()
    assert ChainEntry.from_json(data) == entry == ChainEntry.from_json(unsealed(data))
    with pytest.raises(ValueError, match="check sum"):
        ChainEntry.from_json(data.replace(b"2026", b"2027", 1))
    commit = CommitMetadata("UPSERT", extra_metadata={"a": "b"}).to_json()
    assert CommitMetadata.from_json(unsealed(commit)) == CommitMetadata.from_json(commit)
    assert sealed(unsealed(commit)) == commit
    plan = write_container("HoodieIndexPlan", {"version": 1, "indexPartitionInfos": []})
    assert plan == write_container("HoodieIndexPlan", {"version": 1, "indexPartitionInfos": []})
    with pytest.raises(ValueError, match="check sum"):
        read_container(
            plan.replace(b'"doc"', b'"dok"', 1) if b'"doc"' in plan else plan.replace(b"version", b"versiom", 1)
        )


def test_the_doctor_outlives_an_empty_base_file_and_says_which_check_did_not_end() -> None:
    table = new_table(partitioned=False)
    table.upsert(ROWS)
    base = slices(table)[0].base
    assert base is not None
    table.context.storage.put(base.path, b"")
    checks = {finding.check for finding in found(table, keys=True)}
    assert {Check.WRONG_SIZE, Check.INVALID_PARQUET, Check.INCOMPLETE} <= checks


@pytest.mark.parametrize("layout", [LAYOUTS[0], LOG_LAYOUTS[1]], ids=str)
def test_a_right_metadata_table_is_called_right_beside_a_clean_that_died_after_its_deletions(layout) -> None:
    table = opened(prepared(layout))
    table.build_metadata()
    for value in range(4):
        table.write(pa.table({"id": ["a"], "city": ["x"], "value": [value]}), operation="upsert")
        if layout in LOG_LAYOUTS:
            table.compact(force=True)
    plan = table.schedule_clean({"hoodie.clean.commits.retained": "1"}, force=True)
    assert plan is not None
    context = table.context
    before = {info.path for info in context.storage.list() if not info.path.startswith(".hoodie")}
    twin = opened(_Deleting(context.storage))
    with pytest.raises(KeyboardInterrupt):
        twin.run_clean(plan.instant)
    assert {info.path for info in context.storage.list() if not info.path.startswith(".hoodie")} < before
    assert differences(context) == []
    assert not found(table, Check.METADATA_TABLE)


class _Deleting:
    """A store whose client dies at the first write after a data file was deleted."""

    def __init__(self, inner) -> None:
        self.inner, self.deleted = inner, 0

    def __getattr__(self, name: str):
        if name in ("put", "put_if_absent") and self.deleted:
            raise KeyboardInterrupt
        return getattr(self.inner, name)

    def delete(self, path: str) -> None:
        self.inner.delete(path)
        self.deleted += not path.startswith(".hoodie")

    def reopen(self):
        return lambda: self
