"""Another engine drops properties of a table: it is seen, said, nothing is written by weaker rules,
and the doctor mends it.

What Apache Hudi 0.15.0 drops: `tests/interop/test_kept_properties.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.cli import exits, main
from hudi_table.errors import UnsupportedTableError
from hudi_table.metadata.port import open_context
from hudi_table.model.names import PROPERTIES, PROPERTIES_BACKUP
from hudi_table.model.service.findings import Check
from hudi_table.model.table.java_properties import parse_properties, render_properties
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.kept_properties import KEPT
from hudi_table.table.timeline.properties import replace_properties
from tests.support.beside import seen_anew

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
PAYLOAD = "hoodie.compaction.payload.class"
WEAKER = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
TOLD = (
    "hoodie.index.type",
    "hoodie.bucket.index.num.buckets",
    "hoodie.lakeops.bucket.colon.rule",
    "hoodie.table.timeline.timezone",
)


class Meanwhile:
    """A storage on which somebody else does `change` just before `path` is read for the first
    time."""

    def __init__(self, inner: Storage, path: str, change: Callable[[], None]) -> None:
        self.inner, self.path = inner, path
        self.change: Callable[[], None] | None = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def get(self, path: str) -> bytes:
        if path == self.path and (change := self.change) is not None:
            self.change = None
            change()
        return self.inner.get(path)


def rows(*items: tuple[str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


def new_table(base: str = "") -> HudiTable:
    table = create_table(
        base or f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id", ordering_fields="ts",
        index={"type": "Bucket", "buckets": 2}, type="MergeOnRead", version=6,
    )  # fmt: skip
    table.upsert(rows(("a", 1, 9)))
    return table


def stored(table: HudiTable) -> dict[str, str]:
    return parse_properties(table.context.storage.get(PROPERTIES).decode())


def rewrite(table: HudiTable, properties: dict[str, str]) -> None:
    table.context.storage.put(PROPERTIES, render_properties(properties, ()).encode())


def erase(table: HudiTable) -> dict[str, str]:
    """Leave the properties as another engine does that writes them anew; returns what they were."""
    before = stored(table)
    rewrite(table, {key: value for key, value in before.items() if key not in TOLD} | {PAYLOAD: WEAKER})
    return before


def test_a_table_whose_properties_were_dropped_is_read_by_them_and_not_written_until_they_are_mended() -> None:
    table = new_table()
    table.upsert(rows(("a", 2, 5)))
    before = erase(table)
    found = seen_anew(table)
    assert found.context.config == table.context.config
    assert found.scan().to_arrow()["v"].to_pylist() == [1]
    for change in (lambda: found.upsert(rows(("a", 3, 1))), lambda: found.schedule_compaction(force=True)):
        with pytest.raises(
            UnsupportedTableError, match=r"dropped or changed properties .*hoodie\.index\.type.*doctor .* --mend"
        ):
            change()
    findings = [finding for finding in found.doctor() if finding.check is Check.PROPERTIES]
    assert {key for key in (*TOLD, PAYLOAD) if any(f"{key}, which was" in f.message for f in findings)} == {
        *TOLD,
        PAYLOAD,
    }
    assert set(found.mend()) == {*TOLD, PAYLOAD}
    assert stored(table) == before
    again = seen_anew(table)
    assert not again.doctor()
    again.upsert(rows(("a", 3, 1)))
    assert again.scan().to_arrow()["v"].to_pylist() == [1]


@pytest.mark.parametrize("reopened", [False, True])
def test_who_changes_dropped_properties_goes_on_by_the_copy(reopened: bool) -> None:
    """Building a metadata table names it in the properties, and dropping one does: the file that
    another engine has written is read then."""
    table = new_table()
    table.upsert(rows(("a", 2, 5)))
    table.build_metadata()
    dropped = sorted((*TOLD, PAYLOAD))
    before = table.context.config
    erase(table)
    table = seen_anew(table) if reopened else table
    assert table.drop_metadata()
    found = table.context.config
    assert (found.index, found.payload_class, found.timezone) == (before.index, before.payload_class, before.timezone)
    assert sorted(table.context.lost) == dropped
    assert table.scan().to_arrow()["v"].to_pylist() == [1]
    with pytest.raises(UnsupportedTableError, match="--mend"):
        table.upsert(rows(("a", 3, 1)), options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})


def test_what_we_change_ourselves_is_not_missed() -> None:
    table = create_table(f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id", index="Simple", version=6)
    table.upsert(rows(("a", 1, 9)))
    table.use_index("Bloom")
    assert not seen_anew(table).context.lost
    replace_properties(table.context, {"hoodie.lakeops.txn.suspect.seconds": "60"})
    replace_properties(table.context, {"hoodie.lakeops.txn.suspect.seconds": None})
    assert not seen_anew(table).context.lost
    properties = stored(table)
    rewrite(table, {key: value for key, value in properties.items() if key != "hoodie.index.type"})
    assert seen_anew(table).context.lost == {"hoodie.index.type": ("BLOOM", None)}


@pytest.mark.parametrize(
    ("key", "now"),
    [("hoodie.archivelog.folder", "archiveD"), ("hoodie.archivelog.folder", None), ("hoodie.table.type", None)],
)
def test_where_the_archive_lies_and_what_type_the_table_is_is_read_from_the_copy(key: str, now: str | None) -> None:
    table = new_table()
    properties = stored(table)
    was = properties.pop(key)
    rewrite(table, properties | ({} if now is None else {key: now}))
    found = seen_anew(table)
    assert found.context.lost == {key: (was, now)}
    assert found.context.config == table.context.config
    with pytest.raises(UnsupportedTableError, match="--mend"):
        found.upsert(rows(("a", 2, 9)))


@pytest.mark.parametrize(
    "updates", [{"hoodie.lakeops.row.group.rows": "9"}, {"hoodie.lakeops.txn.suspect.seconds": None}]
)
def test_a_change_of_ours_while_a_table_is_opened_is_not_missed(updates: dict[str, str | None]) -> None:
    table = new_table()
    replace_properties(table.context, {"hoodie.lakeops.txn.suspect.seconds": "60"})
    for path in (PROPERTIES, KEPT):
        storage = Meanwhile(table.context.storage, path, lambda: replace_properties(table.context, updates))
        assert not open_context(cast("Storage", storage)).lost
        assert storage.change is None
        replace_properties(table.context, {key: None if value else "60" for key, value in updates.items()})


def test_a_table_without_a_copy_gets_one_with_its_next_write_if_it_is_ours() -> None:
    table = new_table()
    table.context.storage.delete(KEPT)
    seen_anew(table).upsert(rows(("a", 2, 9)))
    erase(table)
    assert seen_anew(table).context.lost
    theirs = new_table()
    theirs.context.storage.delete(KEPT)
    erase(theirs)
    assert not seen_anew(theirs).context.lost


def test_the_command_says_what_it_put_back(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    base = f"{tmp_path}/t"
    table = new_table(base)
    before = erase(table)
    assert main(["doctor", base]) == exits.FINDINGS
    assert "another engine has dropped hoodie.index.type, which was 'BUCKET'" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["doctor", base, "--mend"]) == 0
    assert "put back: hoodie.bucket.index.num.buckets" in capsys.readouterr().err
    assert stored(table) == before


def test_a_table_is_opened_while_another_engine_replaces_its_properties() -> None:
    """Hudi keeps the old ones as a backup, and has no file until the new one is written."""
    table = new_table()
    table.upsert(rows(("a", 1, 1)))
    store = table.context.storage
    store.put(PROPERTIES_BACKUP, store.get(PROPERTIES))
    store.delete(PROPERTIES)
    assert seen_anew(table).scan().to_arrow().num_rows == 1
