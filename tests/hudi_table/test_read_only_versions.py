"""Tables of versions 8 and 9 are read and not written: every surface that writes refuses them by name and leaves every file as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import create_table, write_hudi
from hudi_table.api import HudiTable, open_table
from hudi_table.cli.program import main
from hudi_table.cli.service_verbs import SERVICE_VERBS
from hudi_table.errors import UnsupportedTableError
from hudi_table.metadata.port import open_context
from hudi_table.model.service.services import ServiceRequest, ServiceType
from hudi_table.services.registry import Services
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.properties import drop_metadata_table, replace_properties
from tests.support import golden

TABLES = ("v8_mor_compact", "v9_bucket_mor")
REFUSAL = r"table version [89], which this release reads and does not write.* Apache Hudi 1\.x"
ROWS = pa.table({"id": ["k000"], "name": ["x"], "n": pa.array([1], pa.int32()), "price": [1.0], "ts": [9_999], "city": ["sf"]})  # fmt: skip
INSTANT = "20261123014452195"

# Every public call of a table that writes, or that would.
WRITES: dict[str, Callable[[HudiTable], Any]] = {
    "archive": lambda table: table.archive(),
    "build_metadata": lambda table: table.build_metadata(),
    "clean": lambda table: table.clean(),
    "cluster": lambda table: table.cluster(),
    "compact": lambda table: table.compact(),
    "compact_logs": lambda table: table.compact_logs(),
    "delete": lambda table: table.delete(ROWS),
    "delete_savepoint": lambda table: table.delete_savepoint(INSTANT),
    "drop_expired_partitions": lambda table: table.drop_expired_partitions({}),
    "drop_metadata": lambda table: table.drop_metadata(),
    "expired_partitions": lambda table: table.expired_partitions({}),
    "insert": lambda table: table.insert(ROWS),
    "mend": lambda table: table.mend(),
    "pending_clusterings": lambda table: table.pending_clusterings(),
    "pending_resize": lambda table: table.pending_resize(),
    "plan_clean": lambda table: table.plan_clean(),
    "plan_resize": lambda table: table.plan_resize(8),
    "preview_clustering": lambda table: table.preview_clustering(),
    "put_back": lambda table: table.put_back(INSTANT),
    "quarantine": lambda table: table.quarantine(table.doctor()),
    "resize_buckets": lambda table: table.resize_buckets(8),
    "restore": lambda table: table.restore(INSTANT),
    "rollback": lambda table: table.rollback(INSTANT),
    "run_clean": lambda table: table.run_clean(INSTANT),
    "run_clustering": lambda table: table.run_clustering(INSTANT),
    "run_compaction": lambda table: table.run_compaction(INSTANT),
    "savepoint": lambda table: table.savepoint(),
    "schedule_clean": lambda table: table.schedule_clean(),
    "schedule_clustering": lambda table: table.schedule_clustering(),
    "schedule_compaction": lambda table: table.schedule_compaction(),
    "services": lambda table: table.services,
    "upsert": lambda table: table.upsert(ROWS),
    "use_index": lambda table: table.use_index("Bloom"),
    "write": lambda table: table.write(ROWS),
}
READS = {
    "base_path", "changes", "context", "doctor", "files", "history", "name", "properties", "record_key", "savepoints", "scan", "schema",
    "timeline",
}  # fmt: skip
VERBS = {
    "compact": ["--now"],
    "cluster": ["--yes"],
    "resize": ["8", "--yes"],
    "clean": ["--yes"],
    "ttl": ["--yes"],
    "archive": ["--yes", "--now"],
    "metadata": ["--drop", "--yes"],
    "savepoint": ["--create"],
    "rollback": [INSTANT],
    "restore": [INSTANT],
    "keystore": ["--rebuild", "--yes"],
    "doctor": ["--mend"],
}


@pytest.fixture(params=TABLES)
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(request.param, tmp_path).base


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_public_call_either_reads_or_is_tried_here() -> None:
    public = {name for name in dir(HudiTable) if not name.startswith("_")}
    assert public | {"context"} == WRITES.keys() | READS


def test_every_call_that_writes_refuses_the_table_by_name(base: Path) -> None:
    before = contents(base)
    table = open_table(str(base))
    for call in WRITES.values():
        with pytest.raises(UnsupportedTableError, match=REFUSAL):
            call(table)
        assert contents(base) == before


def test_functions_of_the_package_refuse_it(base: Path) -> None:
    before = contents(base)
    config = open_table(str(base)).context.config
    with pytest.raises(UnsupportedTableError, match=REFUSAL):
        write_hudi(open_table(str(base)), ROWS)
    with pytest.raises(UnsupportedTableError, match=REFUSAL):
        create_table(
            str(base),
            ROWS.schema,
            name=config.name,
            record_key="id",
            partition_by="city",
            ordering_fields="ts",
            type="MergeOnRead",
            merge_mode=config.merge_mode.value,
            hive_style=config.hive_style,
            if_exists="open",
        )
    assert contents(base) == before


@pytest.mark.parametrize("kind", list(ServiceType))
def test_the_service_of_a_job_refuses_it(kind: ServiceType, base: Path) -> None:
    with pytest.raises(UnsupportedTableError, match=REFUSAL):
        Services(open_context(open_storage(str(base)))).of_type(kind, ServiceRequest())


@pytest.mark.parametrize("verb", sorted(SERVICE_VERBS))
def test_the_verb_of_a_service_refuses_it(verb: str, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(base)
    assert main([verb, str(base), *VERBS[verb]]) == 1
    assert "which this release reads and does not write" in capsys.readouterr().err
    assert contents(base) == before


def test_a_surface_that_does_not_ask_changes_nothing(base: Path) -> None:
    before = contents(base)
    ctx = open_context(open_storage(str(base)))
    for storage in (ctx.storage, ctx.storage.reopen()()):
        for write in (
            lambda storage: storage.put("x", b""),
            lambda storage: storage.put_if_absent("x", b""),
            lambda storage: storage.delete(".hoodie/hoodie.properties"),
            lambda storage: storage.open_write("x"),
        ):
            with pytest.raises(UnsupportedTableError, match=REFUSAL):
                write(storage)
    with pytest.raises(UnsupportedTableError, match=REFUSAL):
        replace_properties(ctx, {"hoodie.x": "1"})
    with pytest.raises(UnsupportedTableError, match=REFUSAL):
        drop_metadata_table(ctx, "")
    assert contents(base) == before


def test_its_metadata_table_is_left_alone_and_said_not_to_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = golden.unpack("v9_nbcc", tmp_path).base
    assert (base / ".hoodie" / "metadata" / "files").is_dir()
    assert main(["metadata", str(base)]) == 1
    assert "the metadata table of a table of version 9 is not read by this release" in capsys.readouterr().err
    assert main(["doctor", str(base)]) == 0
    assert "leftovers, not the metadata table" in capsys.readouterr().err
    rows = open_table(str(base)).scan().count()
    for file in (base / ".hoodie" / "metadata").rglob("*.log*"):
        file.write_bytes(b"damaged")
    assert open_table(str(base)).scan().count() == rows


def test_what_a_table_is_says_that_it_is_not_written(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(base)]) == 0
    told = capsys.readouterr()
    assert "Table version" in told.out
    assert "which this release reads and does not write" in told.err


@pytest.mark.parametrize(
    ("version", "step"),
    [
        ("5", "a write of Apache Hudi 0.14 or 0.15 brings it to version 6"),
        ("7", "upgrade_table and downgrade_table"),
        ("10", "upgrade_table and downgrade_table"),
        ("nine", "upgrade_table and downgrade_table"),
    ],
)
def test_a_version_that_is_not_read_is_refused_with_what_to_do(version: str, step: str, base: Path) -> None:
    path = base / ".hoodie" / "hoodie.properties"
    text = path.read_text()
    path.write_text(
        text.replace("hoodie.table.version=8", f"hoodie.table.version={version}").replace(
            "hoodie.table.version=9", f"hoodie.table.version={version}"
        )
    )
    with pytest.raises(
        UnsupportedTableError,
        match=f"table version {version}; this release reads versions 6, 8 and 9 and writes version 6",
    ) as raised:
        open_table(str(base))
    assert step in raised.value.message
