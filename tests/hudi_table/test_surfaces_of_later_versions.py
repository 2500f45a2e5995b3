"""Tables of versions 8 and 9 on every surface: all calls work, but for what this release refuses by
name, which leaves every file as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import create_table
from hudi_table.api import HudiTable, open_table
from hudi_table.cli.program import main
from hudi_table.errors import InvalidOptionError, InvalidRequestError, UnsupportedTableError
from tests.support import golden

TABLES = ("v8_mor_compact", "v9_bucket_mor")
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
    "create_index": lambda table: table.build_metadata(["record_index"]) and table.create_index("by_name", "name"),
    "delete": lambda table: table.delete(ROWS),
    "delete_savepoint": lambda table: table.delete_savepoint(INSTANT),
    "drop_expired_partitions": lambda table: table.drop_expired_partitions({}),
    "drop_index": lambda table: table.drop_index("by_name"),
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


@pytest.fixture(params=[8, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    """A table of ours with logs, of either version."""
    made = create_table(
        tmp_path / "t", ROWS.schema, record_key="id", partition_by="city", ordering_fields="ts", type="MergeOnRead",
        index={"type": "Bucket", "buckets": 2}, version=request.param,
    )  # fmt: skip
    made.insert(ROWS)
    made.upsert(ROWS)
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_public_call_either_reads_or_is_tried_here() -> None:
    public = {name for name in dir(HudiTable) if not name.startswith("_")}
    assert public | {"context"} == WRITES.keys() | READS


@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_call_works(name: str, table: HudiTable) -> None:
    base = Path(table.base_path)
    # Other errors are about what is asked for, such as an instant that is not there.
    with contextlib.suppress(InvalidRequestError):
        WRITES[name](table)
    assert open_table(base).scan().count() <= 1


@pytest.mark.parametrize(
    "how",
    [
        {"partial_updates": "IgnoreDefaults"},
        {"options": {"hoodie.compaction.payload.class": "AWSDmsAvroPayload"}, "ordering_fields": "ts"},
    ],
)
def test_logs_that_merge_by_more_than_time_are_refused_in_version_8(how: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableError, match=r"merges rows in table version 8 by .*Payload"):
        create_table(tmp_path / "t", ROWS.schema, record_key="id", version=8, type="MergeOnRead", **how)
    assert not list(tmp_path.iterdir())


def test_a_version_that_is_not_written_is_refused(tmp_path: Path) -> None:
    for version in (5, 7, 10):
        with pytest.raises(InvalidOptionError, match="this release writes versions 6, 8 and 9"):
            create_table(tmp_path / "t", ROWS.schema, record_key="id", version=version)


@pytest.mark.parametrize("name", ["v8_rli_sec", "v9_expr_stats", "v9_nbcc", "v9_rli_part"])
def test_its_metadata_table_is_read_and_agrees(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = golden.unpack(name, tmp_path).base
    assert (base / ".hoodie" / "metadata" / "files").is_dir()
    assert main(["metadata", str(base)]) == 0
    assert "files" in capsys.readouterr().out
    assert main(["doctor", str(base)]) == 0
    rows = open_table(str(base)).scan().count()
    for file in (base / ".hoodie" / "metadata").rglob("*.log*"):
        file.write_bytes(b"damaged")
    assert open_table(str(base)).scan().count() == rows
    assert main(["doctor", str(base)]) != 0


@pytest.mark.parametrize(
    ("version", "step"),
    [
        ("5", "a write of Apache Hudi 0.14 or 0.15 brings it to version 6"),
        ("7", "upgrade_table and downgrade_table"),
        ("10", "upgrade_table and downgrade_table"),
        ("nine", "upgrade_table and downgrade_table"),
    ],
)
@pytest.mark.parametrize("name", TABLES)
def test_a_version_that_is_not_read_is_refused_with_what_to_do(
    version: str, step: str, name: str, tmp_path: Path
) -> None:
    base = golden.unpack(name, tmp_path).base
    path = base / ".hoodie" / "hoodie.properties"
    text = path.read_text()
    path.write_text(
        text.replace("hoodie.table.version=8", f"hoodie.table.version={version}").replace(
            "hoodie.table.version=9", f"hoodie.table.version={version}"
        )
    )
    with pytest.raises(
        UnsupportedTableError,
        match=f"table version {version}; this release reads and writes versions 6, 8 and 9",
    ) as raised:
        open_table(str(base))
    assert step in raised.value.message
