"""Tables that Apache Hudi 0.15.0 wrote: read by us as its manifest says, continued by us, read
again by every engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import open_table
from hudi_table.errors import InvalidOptionError
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.support import golden, hudi_rs
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import assert_same_rows, by_key

pytestmark = pytest.mark.interop

SIMPLE = {"hoodie.index.type": "SIMPLE"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
RINGS = BUCKETS | {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
MILLIS = {"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS"}


@dataclass(frozen=True)
class Continuation:
    """How a golden table is continued: what a writer must be told of it, its key, and a column that
    is no key."""

    options: dict[str, str] = field(default_factory=lambda: dict(SIMPLE))
    key: tuple[str, ...] = ("id",)
    changed: str = "name"


CONTINUED = {name: Continuation() for name in golden.COPY_ON_WRITE} | {
    "bktcow": Continuation(BUCKETS),
    "comp": Continuation(key=("id", "name"), changed=""),
    "evo": Continuation(changed="nm"),
    "tskg": Continuation(SIMPLE | MILLIS),
}


def stored(table: golden.Golden) -> pa.Table:
    """The manifest's rows with the values as the files hold them (docs/reference/compatibility.md,
    cases 6 and 7)."""
    rows = table.rows()
    if table.name == "tskg":
        return rows.set_column(rows.schema.get_field_index("ts"), "ts", pa.array([1000], pa.int64()))
    if table.name == "comp":
        city = pc.if_else(pc.equal(rows["id"], "ky"), "", rows["city"])
        return rows.set_column(rows.schema.get_field_index("city"), "city", city)
    return rows


def seen(name: str, oracle: HudiOracle, rows: pa.Table) -> pa.Table:
    """Stored rows as `oracle` shows them."""
    if name == "tskg":
        shown = pc.cast(rows["ts"], pa.string()) if oracle.is_1x else rows["_hoodie_partition_path"]
        return rows.set_column(rows.schema.get_field_index("ts"), "ts", shown)
    if name == "comp":
        city = pc.if_else(pc.equal(rows["city"], ""), None, rows["city"])
        return rows.set_column(rows.schema.get_field_index("city"), "city", city)
    return rows


@pytest.mark.by_turns
@pytest.mark.parametrize("name", golden.COPY_ON_WRITE)
def test_a_golden_table_is_read_continued_and_read_again(hudis: Hudis, tmp_path: Path, name: str) -> None:
    table, how = golden.unpack(name, tmp_path), CONTINUED[name]
    before = ours.read(table.base)
    assert_same_rows(before, stored(table), key=how.key, of="ours before")
    ours.write(table.base, "upsert", data := continuation(before, how), options=how.options)
    expected = by_key(before, how.key) | by_key(data, how.key)
    mine = ours.read(table.base, meta=name != "nometa")
    assert_same_rows(mine, expected.values(), key=how.key, columns=before.column_names, of="ours after")

    def check(oracle: HudiOracle) -> None:
        rows = seen(name, oracle, mine)
        assert_same_rows(oracle.read(table.base), rows, key=how.key, columns=mine.column_names, of=repr(oracle))

    hudis.each(check)


def continuation(rows: pa.Table, how: Continuation) -> pa.Table:
    """An update of the first row, newer by its ordering field, and a new key beside it."""
    update = rows.slice(0, 1).to_pylist()[0]
    if how.changed:
        update[how.changed] = "changed"
    new = update | {"id": 99 if isinstance(update["id"], int) else "zz"}
    return pa.Table.from_pylist([update, new], schema=rows.schema)


@pytest.mark.parametrize("name", [name for name in golden.MERGE_ON_READ if name != "failmor"])
def test_a_merge_on_read_golden_table_is_continued_compacted_and_read_again(
    hudis: Hudis, tmp_path: Path, name: str
) -> None:
    table = golden.unpack(name, tmp_path)
    before = ours.read(table.base)
    how = Continuation({"bktmor": BUCKETS, "bktcons": RINGS}.get(name, SIMPLE))
    ours.write(table.base, "upsert", data := continuation(before, how), options=how.options)
    expected = by_key(before, how.key) | by_key(data, how.key)

    def check(oracle: HudiOracle) -> None:
        mine = ours.read(table.base, meta=True)
        assert_same_rows(mine, expected.values(), columns=before.column_names, of="ours after")
        assert_same_rows(oracle.read(table.base), mine, columns=mine.column_names, of=repr(oracle))

    # 1.1.1 takes older deletes in logs for void (docs/reference/compatibility.md, case 21), until they are compacted.
    hudis.each(lambda oracle: None if name == "sem_Def_MERG" and oracle.is_1x else check(oracle))
    assert open_table(str(table.base)).compact(force=True)
    assert not any(row["log_files"] for row in open_table(str(table.base)).files().to_pylist() if row["latest"])
    hudis.each(check)


def test_a_rollback_later_than_the_newest_write_hides_it_from_0_15_0_until_the_next(
    hudis: Hudis, tmp_path: Path
) -> None:
    """Case 30 of docs/reference/compatibility.md."""
    table = golden.unpack("failmor", tmp_path)
    whole = ours.read(table.base)
    assert_same_rows(hudi_rs.read(table.base), whole, columns=whole.column_names, of="hudi-rs")
    rows = table.rows("snapshot").select(whole.column_names)
    hidden = {row["id"] for row in whole.to_pylist() if row not in rows.to_pylist()}
    assert hidden == {"k001", "k002", "k003"}

    def before(oracle: HudiOracle) -> None:
        shown = oracle.read(table.base)
        assert_same_rows(shown, whole if oracle.is_1x else rows, columns=whole.column_names, of=repr(oracle))

    hudis.each(before)
    ours.write(table.base, "upsert", data := continuation(whole, Continuation(SIMPLE)), options=SIMPLE)
    expected = by_key(whole, ("id",)) | by_key(data, ("id",))

    def after(oracle: HudiOracle) -> None:
        for shown in (ours.read(table.base), oracle.read(table.base)):
            assert_same_rows(shown, expected.values(), columns=whole.column_names, of=repr(oracle))

    hudis.each(after)


def test_a_table_with_consistent_hashing_is_not_written_by_another_index(tmp_path: Path) -> None:
    table = golden.unpack("bktcons", tmp_path)
    before = {path: path.read_bytes() for path in table.base.rglob("*") if path.is_file()}
    for options in (SIMPLE, BUCKETS):
        with pytest.raises(InvalidOptionError, match="consistent hashing"):
            ours.write(table.base, "upsert", ours.read(table.base).slice(0, 1), options=options)
    assert {path: path.read_bytes() for path in table.base.rglob("*") if path.is_file()} == before
