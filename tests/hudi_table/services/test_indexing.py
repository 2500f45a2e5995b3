"""Building the metadata table as a table service, and what is said of one that was switched off."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.definitions import noted_expression
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.names import METADATA_TABLE
from hudi_table.model.options.write_options import INDEXING_DROP, INDEXING_PARTITIONS
from hudi_table.model.service.services import ServiceRequest, ServiceType
from hudi_table.model.table.properties import METADATA_DROPPED
from hudi_table.table.timeline.properties import read_properties, replace_properties
from tests.support.written import new_table, rows


def written() -> HudiTable:
    table = new_table()
    table.upsert(rows(("a", "x", 1), ("b", "y", 2)))
    return table


def asked(*names: str, **options: str) -> ServiceRequest:
    return ServiceRequest({INDEXING_PARTITIONS: ", ".join(names), **options} if names else options)


def why_off(table: HudiTable) -> str | None:
    return read_properties(table.context.storage, table.context.clock).get(METADATA_DROPPED)


def switched_off() -> HudiTable:
    """By a write that found a partition that it cannot keep."""
    table = written()
    table.build_metadata()
    replace_properties(table.context, {"hoodie.table.metadata.partitions": "files,partition_stats"})
    with pytest.warns(MetadataDroppedWarning):
        table.upsert(rows(("c", "x", 3)))
    return table


def test_files_are_built_if_nothing_is_named():
    table = written()
    (done,) = table.services.indexing.run()
    assert (done.message, done.figures["partitionsBuilt"]) == ("built files", 1)
    assert read_partitions(table.context).ready == ("files",)
    assert differences(table.context) == []


def test_the_partitions_that_are_named_are_built_and_counted():
    table = written()
    (done,) = table.services.indexing(["column_stats", "record_index"]).run()
    assert done.message == "built files, column_stats, record_index"
    assert done.figures["partitionsBuilt"] == 3
    assert done.figures["fileGroups"] == 1 + 2 + 10
    assert done.figures["bytesWritten"] == sum(
        info.size for info in table.context.storage.list(METADATA_TABLE) if info.path.endswith((".hfile", "0-0-0"))
    )


def test_only_what_is_missing_is_built():
    table = written()
    table.build_metadata(["column_stats"])
    assert [done.message for done in table.services.indexing(["column_stats", "bloom_filters"]).run()] == [
        "built bloom_filters"
    ]


def test_nothing_is_done_where_everything_is_ready():
    table = written()
    table.build_metadata(["column_stats"])
    before = table.context.storage.list("")
    assert table.services.indexing(["column_stats"]).plan() is None
    assert table.services.indexing(["column_stats"]).run() == []
    assert table.context.storage.list("") == before


def test_a_dry_run_tells_what_would_be_read_and_changes_nothing():
    table = written()
    before = table.context.storage.list("")
    plan = table.services.indexing(["column_stats"]).plan()
    assert plan is not None
    assert plan.details == ("build files", "build column_stats")
    assert (plan.files_before, plan.bytes_read > 0) == (2, True)
    assert table.context.storage.list("") == before


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (lambda: asked("secrets"), InvalidOptionError, "'secrets'"),
        (lambda: asked("record_index", "partitioned_record_index"), InvalidRequestError, "global or by partition"),
        (lambda: asked(**{"hoodie.metadata.enable": "false"}), InvalidOptionError, "hoodie.metadata.enable is false"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_is_written(request_, error, words):
    table = written()
    before = table.context.storage.list("")
    for call in (
        lambda: table.services.of_type(ServiceType.INDEXING, request_()).plan(),
        lambda: table.services.of_type(ServiceType.INDEXING, request_()).run(),
    ):
        with pytest.raises(error, match=words):
            call()
    assert table.context.storage.list("") == before


def test_the_option_names_what_is_built_where_the_call_does_not():
    """It was overwritten without a word."""
    table, options = written(), {INDEXING_PARTITIONS: "column_stats"}
    with pytest.raises(InvalidOptionError, match="contradicts the partitions bloom_filters"):
        table.build_metadata(["bloom_filters"], options)
    assert table.build_metadata(options=options)
    assert "column_stats" in open_table(table.base_path).context.config.metadata_partitions


def on_version_9(tmp_path: Path) -> HudiTable:
    """A table with an index of a secondary key and one of an expression."""
    found = pa.table({"id": ["a", "b"], "name": ["x", "y"], "at": pa.array([1, 2], pa.date32())})
    table = create_table(tmp_path / "t", found.schema, record_key="id", version=9)
    table.insert(found)
    table.build_metadata(["record_index", "secondary_index_by_name=name", "expr_index_upper=upper(name)"])
    return open_table(table.base_path)


def test_an_index_that_is_named_to_go_is_dropped_before_others_are_built(tmp_path: Path):
    """So one of an expression takes the place of another one of its column, in one run."""
    table = on_version_9(tmp_path)
    wanted = table.services.indexing(["expr_index_lower=lower(name)"], {INDEXING_DROP: "upper, by_name"})
    plan = wanted.plan()
    assert plan is not None
    assert plan.details == ("drop expr_index_upper", "drop secondary_index_by_name", "build expr_index_lower")
    (done,) = wanted.run()
    assert done.message == "dropped expr_index_upper, secondary_index_by_name; built expr_index_lower"
    assert (done.figures["partitionsDropped"], done.figures["partitionsBuilt"]) == (2, 1)
    table = open_table(table.base_path)
    assert set(read_partitions(table.context).ready) == {"files", "record_index", "expr_index_lower"}
    assert table.services.indexing(drop=["upper"]).plan() is None
    assert table.services.indexing(drop=["upper"]).run() == []
    assert differences(table.context) == []


def test_only_dropping_reads_no_file(tmp_path: Path):
    table = on_version_9(tmp_path)
    plan = table.services.indexing(drop=["by_name"]).plan()
    assert plan is not None
    assert (plan.why, plan.bytes_read) == ("secondary_index_by_name no longer wanted", 0)
    (done,) = table.services.indexing(drop=["by_name"]).run()
    assert done.message == "dropped secondary_index_by_name"
    assert open_table(table.base_path).create_index("by_name", "name")


@pytest.mark.parametrize(
    ("names", "drop", "error", "words"),
    [
        (["secondary_index_by_name=name"], ["by_name"], InvalidRequestError, "by_name is to be built and to be drop"),
        (["expr_index_second=lower(name)"], [], InvalidRequestError, "'name' has the index expr_index_upper"),
        (["secondary_index_x=nobody"], ["upper"], InvalidRequestError, "has no column 'nobody'"),
        (["expr_index_x=month(name)"], ["upper"], UnsupportedTableError, "expr_index_x is not built"),
        ([], ["a-b"], InvalidRequestError, "letters, digits and `_`, not 'a-b'"),
    ],
)
def test_what_cannot_be_dropped_and_built_together_leaves_what_is_there(
    tmp_path: Path, names: list[str], drop: list[str], error: type[Exception], words: str
):
    table = on_version_9(tmp_path)
    before = table.context.storage.list("")
    for call in (table.services.indexing(names, drop=drop).plan, table.services.indexing(names, drop=drop).run):
        with pytest.raises(error, match=words):
            call()
    assert table.context.storage.list("") == before


def test_a_comma_in_quotes_is_one_of_the_format(tmp_path: Path):
    """It parted the list, and the rest was taken for a partition."""
    table = on_version_9(tmp_path)
    asked_for = "expr_index_at=date_format(at) format='yyyy, MM'"
    assert table.build_metadata([asked_for, "column_stats"])
    assert table.services.indexing([asked_for]).plan() is None
    note = noted_expression(table.context, "expr_index_at")
    assert note is not None
    assert note.options == {"format": "yyyy, MM"}


def test_a_table_that_stores_no_keys_has_no_index_of_them():
    table = written()
    replace_properties(table.context, {"hoodie.populate.meta.fields": "false"})
    with pytest.raises(UnsupportedTableError, match="which this table does not store"):
        table.services.indexing(["record_index"]).run()


def test_a_building_that_was_begun_is_finished(monkeypatch: pytest.MonkeyPatch):
    table = written()
    put = table.context.storage.put

    def fails(path: str, data: bytes) -> None:
        if path.endswith(".hfile"):
            raise InterruptedError
        put(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(table.context.storage, "put", fails)
        with pytest.raises(InterruptedError):
            table.services.indexing(["column_stats"]).run()
    other = open_table(table.base_path)
    other.upsert(rows(("c", "x", 3)))
    (done,) = other.services.indexing(["column_stats"]).run()
    assert done.message == "built files, column_stats"
    assert differences(other.context) == []


def test_why_a_write_switched_it_off_stays_in_the_properties():
    table = switched_off()
    assert why_off(table) == "this release does not keep its partition partition_stats (it had files,partition_stats)"
    table.upsert(rows(("d", "x", 4)))
    assert why_off(table) is not None


def test_it_is_said_no_more_when_one_is_ready_again():
    table = switched_off()
    table.services.indexing.run()
    assert why_off(table) is None


@pytest.mark.parametrize("how", ["on purpose", "by an option"])
def test_it_is_said_no_more_when_somebody_wants_none(how: str):
    table = switched_off()
    if how == "on purpose":
        table.drop_metadata()
    else:
        table.upsert(rows(("d", "x", 4)), options={"hoodie.metadata.enable": "false"})
    assert why_off(table) is None


def test_what_somebody_switches_off_has_no_reason():
    table = written()
    table.build_metadata()
    table.drop_metadata()
    assert why_off(table) is None


def test_a_restore_switches_it_off_and_says_so():
    table = written()
    kept = table.savepoint().instant
    table.build_metadata()
    table.upsert(rows(("c", "x", 3)))
    table.restore(kept, writers_stopped=True)
    assert why_off(table) == "completed commits were taken back by a rollback or a restore (it had files)"


def test_a_table_that_never_had_one_says_nothing_after_a_restore():
    table = written()
    kept = table.savepoint().instant
    table.upsert(rows(("c", "x", 3)))
    table.restore(kept, writers_stopped=True)
    assert why_off(table) is None
