"""The doctor finds files that are gone although nothing took them, and rows that cannot be read.

Aspects: of the newest slice, of an earlier one, before and after a later write; what cleans,
rollbacks and restores took; pages and blocks.
"""

from __future__ import annotations

import pytest

from hudi_table.api import HudiTable
from hudi_table.codec.archive_entries import encode_entries
from hudi_table.codec.log.blocks import scan_blocks
from hudi_table.codec.parquet import read_footer
from hudi_table.metadata.port import open_context
from hudi_table.model.progress import Progress
from hudi_table.model.service.findings import Check, Severity
from hudi_table.model.timeline.instants import Action, State
from hudi_table.services.archiving.records import entry_of
from hudi_table.table.timeline.active import body, load_timeline
from hudi_table.table.timeline.archived import archive_path
from tests.support.damaged import base_of, found, logged, written
from tests.support.written import rows, slices

KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


def test_a_file_that_the_newest_slice_needs_and_that_is_gone_is_found():
    table = written()
    path = base_of(table).path
    table.context.storage.delete(path)
    assert [f.path for f in found(table, Check.MISSING_FILE)] == [path]


def test_a_log_that_the_newest_slice_needs_and_that_is_gone_is_found():
    table = written(type="MergeOnRead")
    path = logged(table).logs[0].path
    table.context.storage.delete(path)
    assert [f.path for f in found(table, Check.MISSING_FILE)] == [path]


def again_opened(table):
    """As another process sees it."""
    return HudiTable(open_context(table.context.storage))


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_a_superseded_file_that_was_cleaned_is_no_finding_even_if_the_clean_is_archived(kind):
    table = written(type=kind)
    for number in range(4):
        table.upsert(rows(("a", "x", 20 + number)))
        table.compact(force=True) if kind == "MergeOnRead" else None
    table.clean(options=KEEP, force=True)
    assert found(table, Check.MISSING_FILE) == []
    (cleaned,) = [i for i in load_timeline(table.context).completed if i.action is Action.CLEAN]
    entry = entry_of(table.context, load_timeline(table.context), cleaned, lambda _: body(table.context, cleaned))
    table.context.storage.put(archive_path(table.context, 1), encode_entries([entry]))
    for state in State:
        table.context.storage.delete(table.context.layout.timeline_path(cleaned.with_state(state).file_name))
    assert found(table, Check.MISSING_FILE) == []
    table.context.storage.delete(archive_path(table.context, 1))
    assert found(table, Check.MISSING_FILE) != []


def test_a_superseded_file_that_no_clean_took_is_found():
    table = written()
    path = base_of(table).path
    table.upsert(rows(("a", "x", 10), ("b", "x", 10)))
    table.context.storage.delete(path)
    (finding,) = found(table)
    assert (finding.check, finding.severity, finding.path) == (Check.MISSING_FILE, Severity.WARNING, path)
    assert "as of" in finding.message


@pytest.mark.parametrize("index", ["simple", "bucket"])
def test_a_base_file_that_was_gone_when_a_later_write_built_upon_older_rows_is_found(index):
    table = written(index)
    base = base_of(table)
    table.context.storage.delete(base.path)
    again = again_opened(table)
    assert again.upsert(rows(("a", "x", 10), ("b", "x", 10))).rows_updated
    (finding,) = [f for f in found(again) if f.path == base.path]
    assert (finding.check, finding.severity) == (Check.MISSING_FILE, Severity.ERROR)
    assert f"those of {base.instant} are lost" in finding.message


@pytest.mark.parametrize("layer", ["base", "log"])
def test_a_file_that_was_gone_when_a_compaction_was_planned_is_found_after_it(layer):
    table = written(type="MergeOnRead")
    table.compact(force=True)
    table.upsert(rows(("a", "x", 10)))
    table.upsert(rows(("a", "x", 11)))
    item = logged(table)
    assert item.base is not None
    path = item.base.path if layer == "base" else item.logs[-1].path
    table.context.storage.delete(path)
    again = again_opened(table)
    again.compact(force=True)
    (finding,) = [f for f in found(again) if f.path == path]
    assert (finding.check, finding.severity) == (Check.MISSING_FILE, Severity.ERROR)


@pytest.mark.parametrize("undo", ["rollback", "restore"])
def test_files_of_commits_that_were_taken_back_are_no_finding(undo):
    table = written()
    saved = table.savepoint().instant
    if undo == "rollback":
        table.delete_savepoint(saved, writers_stopped=True)
    written_last = table.upsert(rows(("a", "x", 10))).instant
    if undo == "rollback":
        table.rollback(written_last, writers_stopped=True)
    else:
        table.restore(saved, writers_stopped=True)
    assert found(table, Check.MISSING_FILE) == []


@pytest.mark.parametrize("layer", ["base", "log"])
def test_a_file_that_a_pending_plan_needs_and_that_is_gone_is_found(layer):
    table = written(type="MergeOnRead")
    table.schedule_compaction(force=True)
    item = logged(table)
    path = base_of(table, slices(table).index(item)).path if layer == "base" else item.logs[0].path
    table.context.storage.delete(path)
    assert path in {f.path for f in found(table, Check.MISSING_FILE) if "pending compaction" in f.message}


def test_a_file_of_a_plan_that_was_given_up_is_no_finding():
    table = written()
    plan = table.schedule_clustering(force=True)
    path = base_of(table).path
    table.context.storage.delete(path)
    assert path in {f.path for f in found(table, Check.MISSING_FILE) if "pending" in f.message}
    table.rollback(plan.instant, writers_stopped=True)
    assert not [f for f in found(table, Check.MISSING_FILE) if "pending" in f.message]


def cut_page(table, path):
    """Other bytes in the middle of a page: neither the size nor the footer tells."""
    data = bytearray(table.context.storage.get(path))
    place = data.index(b"PAR1") + 40
    data[place] ^= 0xFF
    table.context.storage.put(path, bytes(data))


def test_damage_within_a_page_is_found_by_reading_data():
    table = written()
    path = base_of(table).path
    cut_page(table, path)
    assert found(table) == []
    seen: list[Progress] = []
    (finding,) = found(table, data=True, progress=seen.append)
    assert (finding.check, finding.severity, finding.path) == (Check.DAMAGED_DATA, Severity.ERROR, path)
    counted = [step for step in seen if step.operation == "doctor --data"]
    assert [step.done for step in counted] == list(range(len(slices(table)) + 1))


def test_damage_within_a_block_of_a_log_is_found_by_reading_data():
    table = written(type="MergeOnRead")
    log = logged(table).logs[0]
    data = bytearray(table.context.storage.get(log.path))
    with table.context.storage.open_read(log.path) as source:
        (block,) = scan_blocks(source)
    data[block.content_offset + block.content_length - 1] ^= 0xFF
    table.context.storage.put(log.path, bytes(data))
    assert found(table) == []
    assert [(f.check, f.path) for f in found(table, data=True)] == [(Check.DAMAGED_DATA, log.path)]


def test_reading_keys_that_ends_at_damage_tells_the_damage_once_and_what_it_kept_from_its_end():
    table = written(partitioned=False)
    path = base_of(table).path
    data = bytearray(table.context.storage.get(path))
    with table.context.storage.open_read(path) as source:
        metadata = read_footer(source).metadata
    assert metadata is not None
    column = metadata.row_group(0).column(metadata.schema.names.index("_hoodie_record_key"))
    place = column.data_page_offset + column.total_compressed_size - 1
    data[place] ^= 0xFF
    table.context.storage.put(path, bytes(data))
    findings = found(table, keys=True)
    assert [f.path for f in findings if f.check is Check.DAMAGED_DATA] == [path]
    assert {f.check for f in findings} == {Check.DAMAGED_DATA, Check.INCOMPLETE}


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_reading_the_data_of_a_sound_table_finds_nothing(kind):
    assert found(written(type=kind), data=True) == []
