"""A first write of another engine that is under way when ours begins the table: nothing of it is
deleted or shown while it lives, also under the lock that both take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import UnavailableError
from hudi_table.metadata.port import open_context
from hudi_table.model.names import HEARTBEAT, TEMP
from hudi_table.model.timeline.instants import parse_instant
from hudi_table.table.commit import transaction
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TxnSettings
from tests.support.beside import OWN, on_a_copy

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "10",
}
SIGNS = {"heartbeat": (f"{HEARTBEAT}/{{}}",), "markers": (f"{TEMP}/{{}}/MARKERS.type", f"{TEMP}/{{}}/MARKERS0")}
versions = pytest.mark.parametrize("version", [6, 8, 9])


def row(key: str) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": 1}], schema=SCHEMA)


def keys(base: Path) -> set[str]:
    return {found["id"] for found in open_table(base).scan().to_arrow().to_pylist()}


class Theirs:
    """The first write of another engine, which has written its files and not completed."""

    def __init__(self, base: Path, sign: str) -> None:
        self.store = open_table(base).context.storage
        before = {info.path: self.store.get(info.path) for info in self.store.list()}
        after = on_a_copy(before, self._write)
        # It founds no table: what bears its instant is all that it does.
        mine = {path: data for path, data in after.items() if self.time in path and not path.startswith(OWN)}
        self.left = {path: data for path, data in mine.items() if _completed(path)}
        self.begun = {path: data for path, data in mine.items() if path not in self.left}
        self.begun |= {path.format(self.time): b"" for path in SIGNS[sign]}
        for path, data in self.begun.items():
            self.store.put(path, data)

    def _write(self, table: HudiTable) -> None:
        self.time = table.upsert(row("theirs")).instant

    def complete(self) -> None:
        for path, data in self.left.items():
            self.store.put(path, data)

    def lost(self) -> list[str]:
        there = {info.path for info in self.store.list()}
        return sorted(self.begun.keys() - there)


def _completed(path: str) -> bool:
    instant = parse_instant(path.rpartition("/")[2]) if path.startswith(".hoodie/") else None
    return instant is not None and instant.completed


@versions
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("lock", [None, LOCK], ids=["no lock", "locked"])
def test_ours_is_refused_while_it_goes_on_and_touches_nothing(
    tmp_path: Path, version: int, sign: str, lock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "FIRST_COMMIT_SECONDS_MAX", 0.1)
    create_table(tmp_path, SCHEMA, record_key="id", version=version)
    theirs = Theirs(tmp_path, sign)
    with pytest.raises(
        UnavailableError, match=f"first write at instant {theirs.time}; write again when that has ended"
    ):
        open_table(tmp_path, lock=lock).upsert(row("ours"))
    assert theirs.lost() == []
    assert keys(tmp_path) == set()
    assert [i.time for i in load_timeline(open_table(tmp_path).context).instants] == [theirs.time]
    theirs.complete()
    open_table(tmp_path, lock=lock).upsert(row("ours"))
    assert keys(tmp_path) == {"ours", "theirs"}


@versions
def test_ours_goes_on_behind_it_if_it_ends_soon(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    create_table(tmp_path, SCHEMA, record_key="id", version=version)
    theirs = Theirs(tmp_path, "heartbeat")
    monkeypatch.setattr(transaction, "_await_first_commit", lambda *_: theirs.complete())
    open_table(tmp_path).upsert(row("ours"))
    assert keys(tmp_path) == {"ours", "theirs"}


@versions
@pytest.mark.parametrize("sign", SIGNS)
def test_one_without_signs_of_life_is_taken_back_before_the_table_begins(
    tmp_path: Path, version: int, sign: str
) -> None:
    create_table(tmp_path, SCHEMA, record_key="id", version=version)
    theirs = Theirs(tmp_path, sign)
    HudiTable(open_context(theirs.store, settings=TxnSettings(suspect_after_seconds=0.0))).upsert(row("ours"))
    assert [path for path in theirs.lost() if path.endswith(".parquet")]
    assert keys(tmp_path) == {"ours"}
