"""A changed byte anywhere in a table ends in the right rows or in a named error, and never ends the
doctor.

Bits are flipped, files cut, stretches swapped and filled with one byte, over every kind of file of
tables that have them all. The tables and the damage are the same in every run: a failure comes
again, and a run that passed passes again.
"""

from __future__ import annotations

import os
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count

import pytest

from hudi_table import errors
from hudi_table.api import HudiTable
from hudi_table.index.record_index import RecordIndexWarning
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.model.service.findings import Severity
from hudi_table.model.table.config import IndexType, TableType
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import ObjectInfo, Storage
from tests.support.aged import PRESENT, AgedStorage
from tests.support.crashes import LATER, LATER_LOGS, RING_LAYOUT, Layout, copied, opened, rows, with_logs
from tests.support.scale import scaled

PLAIN = Layout(IndexType.SIMPLE, True)
LOGS = Layout(IndexType.BUCKET, True, TableType.MERGE_ON_READ)
CHANGES = Layout(IndexType.SIMPLE, False, logs_changes=True)
KEYS = Layout(IndexType.RECORD_INDEX, True)
KEEP = {"hoodie.clean.commits.retained": "2", "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5"}
TRIALS = 6
"""Of each table."""
WRITES_EVERY = 5
BEGINNING = datetime(2025, 1, 1, tzinfo=UTC)
SIGNALS = (errors.InvariantError, errors.ObjectNotFoundError, errors.ObjectExistsError, errors.OutcomeUnknownError)

KINDS: dict[str, str] = {
    "properties": r"\.hoodie/hoodie\.properties$",
    "kept properties": r"\.hoodie/\.txn/properties$",
    "chain entry": r"\.hoodie/\.txn/\d+\.json$",
    "hint": r"\.hoodie/\.txn/(hint|clock)$",
    "marker": r"\.hoodie/\.temp/",
    "archive": r"\.hoodie/(archived|timeline/history)/",
    "definitions": r"\.hoodie/\.index_defs/",
    "ring": r"\.hoodie/\.bucket_index/",
    "hfile": r"\.hoodie/metadata/.*\.hfile$",
    "metadata log": r"\.hoodie/metadata/[a-z_]+/\..*\.log\.",
    "metadata timeline": r"\.hoodie/metadata/\.hoodie/",
    "partition metadata": r"\.hoodie_partition_metadata$",
    "completed write": r"\.hoodie/(timeline/\d+_)?\d+\.(commit|deltacommit|replacecommit)$",
    "other action": r"\.hoodie/(timeline/\d+_)?\d+\.(clean|rollback|savepoint|restore|indexing)$",
    "requested": r"\.hoodie/(timeline/)?\d+\.[a-z]+\.requested$",
    "inflight": r"\.hoodie/(timeline/)?\d+(\.[a-z]+)?\.inflight$",
    "change data": r"\.log\.[^/]*\.cdc$",
    "log": r"/\.[^/]*\.log\.\d+_[^/]*$",
    "base file": r"\.parquet$",
}


class Killed(BaseException):
    """The process is no more."""


def _killed(*_: object) -> None:
    raise Killed


class Dated(AgedStorage):
    """One on which everything was written at the beginning, hours ago."""

    def _older(self, info: ObjectInfo) -> ObjectInfo:
        return replace(info, modified=BEGINNING + timedelta(seconds=self.seconds if info.path == PRESENT else 0.0))


def grown(layout: Layout, monkeypatch: pytest.MonkeyPatch, *, metadata: bool = False) -> Storage:
    """A table that has seen every action: writes, overwrites, a rollback, a savepoint, cleans, an
    archiving, rewrites, a plan that waits."""
    store = with_logs(layout)
    table = opened(Dated(store))
    if metadata:
        table.build_metadata(["column_stats", "bloom_filters", "record_index"])
    table.write(rows(("o", "y", 1)), operation="insert_overwrite")
    table.write(rows(("p", "x", 2), ("q", "y", 3)), operation="upsert")
    table.savepoint()
    _die_writing(store, monkeypatch)
    for number in range(6):
        table.write(rows(("p", "x", number), ("r", "y", number)), operation="upsert")
        if layout.type is TableType.MERGE_ON_READ and number == 3:
            table.compact(force=True)
    table.clean(KEEP, force=True)
    table.archive(KEEP, force=True)
    table.write(rows(("q", "y", 7)), operation="upsert")
    table.write(rows(("r", "y", 0)), operation="delete")
    if layout.type is TableType.MERGE_ON_READ:
        table.schedule_compaction(force=True)
        table.write(rows(("q", "y", 8)), operation="upsert")
    _die_writing(store, monkeypatch)
    return store


def _die_writing(store: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", _killed)
        with pytest.raises(Killed):
            opened(store).write(rows(("p", "x", 99)), operation="upsert")


TABLES: dict[str, Callable[[pytest.MonkeyPatch], Storage]] = {
    "plain": lambda patch: grown(PLAIN, patch),
    "logs": lambda patch: grown(LOGS, patch),
    "rings": lambda patch: grown(RING_LAYOUT, patch),
    "changes": lambda patch: grown(CHANGES, patch),
    "plain of version 9": lambda patch: grown(LATER, patch),
    "logs of version 9": lambda patch: grown(LATER_LOGS, patch),
    "plain with metadata": lambda patch: grown(PLAIN, patch, metadata=True),
    "logs with metadata": lambda patch: grown(LOGS, patch, metadata=True),
    "keys with metadata": lambda patch: grown(KEYS, patch, metadata=True),
}


@cache
def _built(name: str) -> Storage:
    """One of `TABLES`, in every run with the same names and bytes: clocks stand or tick by
    themselves, and ids come from `name`."""
    ticks, ids = count(), random.Random(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemClock, "now", lambda _: BEGINNING + timedelta(milliseconds=10 * next(ticks)))
        patch.setattr(SystemClock, "boot_seconds", lambda _: 0.0)
        patch.setattr(os, "urandom", ids.randbytes)
        return TABLES[name](patch)


def built(name: str) -> Storage:
    """A table of one's own."""
    return copied(_built(name))


def kinds_of(store: Storage) -> dict[str, list[str]]:
    """The paths of each kind of file that there is."""
    found: dict[str, list[str]] = {}
    for info in store.list():
        kind = next((name for name, pattern in KINDS.items() if re.search(pattern, "/" + info.path)), None)
        assert kind is not None, f"{info.path} is of no known kind"
        found.setdefault(kind, []).append(info.path)
    return found


def damaged(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """The bytes otherwise, and how."""
    changed = bytearray(data or b"\0")
    how = chance.choice(["flip", "flip", "cut", "swap", "fill"])
    place = chance.randrange(len(changed))
    if how == "flip":
        changed[place] ^= 1 << chance.randrange(8)
    elif how == "cut":
        del changed[place:]
    else:
        length = min(chance.choice([1, 4, 64, 1024]), len(changed) - place)
        if how == "fill":
            changed[place : place + length] = bytes([chance.choice([0, 0xFF, 0x30])]) * length
        else:
            other = chance.randrange(len(changed) - length + 1)
            first, second = bytes(changed[place : place + length]), bytes(changed[other : other + length])
            changed[place : place + length], changed[other : other + length] = second, first
    return how, bytes(changed)


def difference(whole: bytes, changed: bytes) -> str:
    """Where two files first differ, and the bytes there, so that a failure can be made again by
    hand."""
    place = next((i for i, (a, b) in enumerate(zip(whole, changed, strict=False)) if a != b), len(changed))
    return f"{len(whole)} to {len(changed)} bytes, from {place} on {whole[place : place + 8].hex()} to {changed[place : place + 8].hex()}"


LOOKS: dict[str, Callable[[HudiTable], object]] = {
    "rows": lambda t: _tuples(t.scan()),
    "filtered": lambda t: _tuples(t.scan(filter="value >= 7")),
    "of a key": lambda t: _tuples(t.scan(filter="id = 'q'")),
    "count": lambda t: t.scan().count(),
    "history": lambda t: [(r["instant"], r["action"]) for r in t.timeline(archived=True).to_pylist()],
    "changes": lambda t: _changes(t),
}


def _tuples(scan: object) -> frozenset[tuple[str, str, int]]:
    found = [(row["id"], row["city"], row["value"]) for row in scan.to_arrow().to_pylist()]  # type: ignore[attr-defined]
    assert len(found) == len(set(found))
    return frozenset(found)


def _changes(table: HudiTable) -> list[str]:
    since = table.timeline().to_pylist()[-3]["instant"]
    return sorted(map(str, table.changes(since).to_arrow().to_pylist()))


def told(store: Storage, look: Callable[[HudiTable], object]) -> object:
    """What a look finds, or the name of the error in which it ends."""
    try:
        return look(opened(store))
    except SIGNALS as signal:
        raise AssertionError(f"{signal.name()}: {signal}") from signal
    except errors.HudiError as error:
        return error.name()


@pytest.mark.parametrize("table", TABLES)
def test_damage_ends_in_the_right_rows_or_in_a_named_error(table: str, figure: Callable[[int, str], None]) -> None:
    start = built(table)
    kinds = kinds_of(start)
    expected = {name: told(start, look) for name, look in LOOKS.items()}
    assert not any(isinstance(found, str) for name, found in expected.items() if name != "changes"), expected
    after = told(start_copy := copied(start), _written)
    assert after == told(start_copy, LOOKS["rows"])
    chance = random.Random(table)
    seen: Counter[str] = Counter()
    trials = 0
    for trial in range(scaled(TRIALS)):
        kind = chance.choice(sorted(kinds))
        path = chance.choice(kinds[kind])
        whole = start.get(path)
        how, changed = damaged(whole, chance)
        if changed == whole:
            continue
        trials += 1
        where = f"trial {trial}: {how} of {kind} {path}, {difference(whole, changed)}"
        start.put(path, changed)
        try:
            for name, look in LOOKS.items():
                found = told(start, look)
                assert isinstance(found, str) or found == expected[name], f"{where}: {name}"
                seen[kind if isinstance(found, str) else "right"] += 1
            findings = told(start, lambda t: list(t.doctor(keys=True)))
            assert isinstance(findings, list) or "properties" in kind, f"{where}: doctor {findings}"
            if trial % WRITES_EVERY == 0:
                found = told(copied(start), _written)
                assert isinstance(found, str) or found == after, f"{where}: write"
        except Exception as error:
            error.add_note(where)
            raise
        finally:
            start.put(path, whole)
    figure(trials, "damaged files")
    figure(sum(seen.values()), "looks at a damaged table")
    figure(seen["right"], "looks at a damaged table that found what is right")


@pytest.mark.parametrize("place", [-1, -4000, 500], ids=["version", "trailer", "block"])
def test_a_write_beside_a_damaged_record_index_drops_the_metadata_table_and_says_so(place: int) -> None:
    start = built("plain with metadata")
    shards = [path for path in kinds_of(start)["hfile"] if "/record_index/" in path]
    assert shards
    for path in shards:
        changed = bytearray(start.get(path))
        changed[place] ^= 0x40
        start.put(path, bytes(changed))
    with pytest.warns(MetadataDroppedWarning, match="cannot be read"):
        opened(start).write(rows(("q", "y", 42), ("new", "x", 1)), operation="upsert")
    assert not opened(start).context.config.metadata_partitions
    assert {("q", "y", 42), ("new", "x", 1)} <= _tuples(opened(start).scan())
    assert not [found for found in opened(start).doctor(keys=True) if found.severity is Severity.ERROR]


def _written(table: HudiTable) -> object:
    with warnings.catch_warnings():
        # Of these a write tells: it has left out what it could not read, and its rows are right without.
        warnings.simplefilter("ignore", MetadataDroppedWarning)
        warnings.simplefilter("ignore", RecordIndexWarning)
        table.write(rows(("q", "y", 42), ("new", "x", 1)), operation="upsert")
    return _tuples(table.scan())
