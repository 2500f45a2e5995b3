"""Trimming the decision chain after archiving, and finding the end of a long one."""

from __future__ import annotations

import pytest

from hudi_table.errors import HudiError
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path
from hudi_table.model.timeline.instants import Action
from hudi_table.services.archiving import trim
from hudi_table.table.commit.transaction import begin
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.services.test_archiving import KEEP, aged, archive, store_of
from tests.support.aged import DAYS, AgedStorage
from tests.support.crashes import opened, read, rows
from tests.support.recording import RecordingStorage, Trace


def entries(store: Storage) -> list[int]:
    return [number for number, _ in chain.entries_after(opened(store).context, 0)]


def test_the_chain_loses_the_entries_of_archived_instants_after_seven_days() -> None:
    store = store_of()
    before = entries(store)
    assert archive(aged(store)).figures["chainEntriesTrimmed"] == 0
    assert entries(store) == before
    assert opened(AgedStorage(store, DAYS)).archive(KEEP, force=True) is None, "nothing else leaves"
    trimmed = trim.trim_chain(
        aged(store, DAYS).context, load_timeline(opened(store).context).files["hoodie.properties"]
    )
    assert trimmed == len(before) - 2
    assert entries(store) == before[trimmed:]
    for number in range(3):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    assert ("a", "x", 2) in read(store)
    assert entries(store) == list(range(before[-2], before[-1] + 4))


def test_an_entry_whose_instant_is_on_the_timeline_stops_the_trimming() -> None:
    store = store_of()
    present = load_timeline(opened(store).context).files["hoodie.properties"]
    assert trim.trim_chain(aged(store, DAYS).context, present) == 0


def test_a_restore_that_has_ended_does_not_stop_the_trimming_though_it_stays_on_the_timeline() -> None:
    store = store_of()
    kept = opened(store).savepoint().instant
    opened(store).write(rows(("a", "x", 0)), operation="upsert")
    opened(store).restore(kept, writers_stopped=True)
    opened(store).delete_savepoint(kept, writers_stopped=True)
    for number in range(5):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    restores = [i.time for i in load_timeline(opened(store).context).completed if i.action is Action.RESTORE]
    assert aged(store, DAYS).archive(KEEP, force=True)
    timeline = load_timeline(opened(store).context)
    assert [i.time for i in timeline.completed if i.action is Action.RESTORE] == restores
    left = [entry.instant for _, entry in chain.entries_after(opened(store).context, 0)]
    assert min(left) > restores[0]


def test_a_writer_that_fell_asleep_before_the_trimming_cannot_commit_into_the_gap() -> None:
    store = store_of()
    sleeper = begin(opened(store).context, Action.COMMIT)
    number = sleeper.tail.sequence
    for missing in range(1, number + 1):
        store.delete(entry_path(missing))
    store.put(entry_path(number + 1), chain_entry(store))
    with pytest.raises(HudiError, match="trimmed"):
        sleeper.right.prove()


def chain_entry(store: Storage) -> bytes:
    return ChainEntry(Kind.ABORT, "20200101000000000", "x", max_instant="20200101000000000").to_json()


def test_saved_plans_of_dry_runs_go_with_the_chain() -> None:
    store = store_of()
    store.put(".hoodie/.txn/plans/abc", b"plan")
    present = load_timeline(opened(store).context).files["hoodie.properties"]
    trim.trim_chain(aged(store, 3600.0).context, present)
    assert store.get(".hoodie/.txn/plans/abc") == b"plan"
    trim.trim_chain(aged(store, DAYS).context, present)
    assert not store.list(".hoodie/.txn/plans")


def test_the_end_of_a_long_chain_is_found_without_listing_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "PAGE", 12)
    store = store_of(writes=9)
    last = entries(store)[-1]
    assert chain.read_tail(opened(store).context).sequence == last
    chain.write_hint(opened(store).context, last - 1)
    trace = Trace()
    context = opened(RecordingStorage(store, trace)).context
    assert chain.read_tail(context).sequence == last
    assert chain.read_tail(context).sequence == last
    listed = [len(step.keys) for step in trace.steps if step.call == "list"]
    # A page of the whole, then what comes after the hint, then what comes after the tail that is known: with each the hint and the properties.
    assert listed == [12, 4, 3]
    for wrong in (last + 5, 0):
        chain.write_hint(opened(store).context, wrong)
        assert chain.read_tail(opened(store).context).sequence == last
    store.put(".hoodie/.txn/hint", b"torn \xff")
    assert chain.read_tail(opened(store).context).sequence == last
