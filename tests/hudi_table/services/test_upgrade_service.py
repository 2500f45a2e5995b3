"""Another table version as a table service: plan, approval, savepoint, who reads the table, and
attempts that die on the way."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError, UnsupportedTableError, WriteConflictError
from hudi_table.model.service.services import ServicePlan
from hudi_table.services.upgrading import run
from hudi_table.services.upgrading.run import bring_to
from hudi_table.services.upgrading.service import UpgradeService
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.listing import list_data_files
from tests.support.crashes import LAYOUTS, LOG_LAYOUTS, copied, opened, prepared, read, rows, with_logs
from tests.support.fault_points import after_each_fault
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.written import INDEXES, contents, new_table
from tests.support.written import rows as written

NEXT = ("next", "x", 100)
KINDS: dict[str, dict[str, Any]] = {
    "copy-on-write": {},
    "merge-on-read": {"type": "MergeOnRead", "index": INDEXES["bucket"], "ordering_fields": "ts"},
}


def lived(kind: str, uri: str | None = None) -> HudiTable:
    table = new_table(uri, **KINDS[kind])
    table.insert(written(("a", "x", 1), ("b", "y", 2)))
    table.upsert(written(("a", "x", 3)))
    return table


def again(table: HudiTable) -> HudiTable:
    return open_table(table.base_path)


def bring(table: HudiTable, target: int, **more: Any) -> HudiTable:
    """By a dry run, which is approved."""
    service = again(table).services.upgrade(target, **more)
    plan = service.plan()
    assert plan is not None
    assert service.execute(plan).figures["version"] == target
    return again(table)


@pytest.mark.parametrize("kind", KINDS)
def test_it_brings_a_table_there_and_back_and_its_rows_stay(kind: str) -> None:
    table = lived(kind)
    assert table.services.upgrade(9).request.options == {"hoodie.lakeops.upgrade.version": "9"}
    before = contents(table)
    for target in (9, 6, 8):
        table = bring(table, target)
        assert table.context.config.version == target
        assert contents(table) == before
        assert table.services.upgrade(target).plan() is None
        assert table.services.upgrade(target).run()[0].replayed
        table.upsert(written((f"at{target}", "x", target)))
        before = contents(table)


@pytest.mark.parametrize("kind", KINDS)
def test_the_savepoint_that_it_makes_brings_the_rows_back(kind: str) -> None:
    table = lived(kind)
    before = contents(table)
    table = bring(table, 9)
    (kept,) = table.savepoints()
    assert kept.comment == "before table version 9"
    table.upsert(written(("a", "x", 50), ("c", "x", 51)))
    table.restore(kept.instant, writers_stopped=True)
    assert contents(table) == before


def test_an_empty_table_has_nothing_to_keep() -> None:
    table = bring(new_table(), 8)
    assert table.savepoints() == []


def test_the_plan_says_what_is_rewritten_merged_and_changed() -> None:
    table = lived("merge-on-read")
    plan = table.services.upgrade(9).plan()
    assert isinstance(plan, ServicePlan)
    assert (plan.file_groups, plan.why) == (1, "the table has version 6, 9 is asked for")
    assert plan.files_before == table.timeline().num_rows * 3
    assert plan.bytes_read > 0
    assert "1 slice with logs merged first" in plan.details
    assert "hoodie.table.version=9" in plan.details


def test_an_approval_holds_while_others_write_and_not_once_another_version_is_there() -> None:
    table = lived("copy-on-write")
    plan = table.services.upgrade(9).plan()
    other = table.services.upgrade(8).plan()
    assert plan is not None
    assert other is not None
    assert plan.digest != other.digest
    table.upsert(written(("c", "x", 4)))
    with pytest.raises(WriteConflictError, match=f"the plan now is {plan.digest}; approve that one"):
        table.services.upgrade(9, plan=other.digest).run()
    bring(table, 8)
    with pytest.raises(WriteConflictError, match="approve that one"):
        again(table).services.upgrade(9).execute(plan)


@pytest.mark.parametrize("readers", [["Hudi:0.15"], ["Hudi:1.1", "hudi:0.15.0"]])
def test_a_version_that_a_reader_cannot_read_is_shown_and_not_done(readers: list[str]) -> None:
    table = lived("copy-on-write")
    service = table.services.upgrade(9, readers=readers)
    assert service.request.options["hoodie.lakeops.readers"] == ",".join(readers)
    plan = service.plan()
    assert plan is not None
    said = [line for line in plan.details if line.startswith("could no longer read it")]
    assert [line.split(": ")[1] for line in said] == [f"{readers[-1].replace(':', ' ')} cannot read table version 9"]
    with pytest.raises(
        InvalidRequestError, match=r"udi 0\.15.* cannot read table version 9: Hudi before 1\.0 knows no"
    ):
        service.execute(plan)
    assert again(table).context.config.version == 6
    assert again(table).savepoints() == []
    bring(table, 9, readers=["Hudi:1.1"])


def test_a_reader_of_which_nothing_is_known_is_named_and_keeps_nothing_from_being_done() -> None:
    table = lived("copy-on-write")
    plan = table.services.upgrade(9, readers=["Sail:1"]).plan()
    assert plan is not None
    assert "not known: whether Sail 1 reads table version 9 is not known" in plan.details
    assert bring(table, 9, readers=["Sail:1"]).context.config.version == 9


def test_a_reader_that_could_not_read_the_table_before_loses_nothing() -> None:
    table = bring(lived("copy-on-write"), 9)
    assert bring(table, 8, readers=["Hudi:0.15"]).context.config.version == 8


def test_what_names_no_version_or_no_reader_is_refused_by_name() -> None:
    table = lived("copy-on-write")
    with pytest.raises(InvalidOptionError, match="an upgrade needs the version, one of 6, 8, 9"):
        table.services.upgrade.plan()
    with pytest.raises(InvalidOptionError, match="'Trino' is no engine:version, such as Trino:476"):
        table.services.upgrade(9, readers=["Trino"]).plan()


def approved(store: Storage, target: int) -> str:
    plan = UpgradeService(opened(store).context)(target).plan()
    assert plan is not None
    return plan.digest


def attempt(store: Storage, target: int, digest: str) -> object:
    return UpgradeService(opened(store).context)(target, plan=digest).run()


def test_an_approval_holds_behind_an_attempt_that_was_given_up_when_it_had_made_its_savepoint() -> None:
    """The reply to its last claim was lost, so it met a claim of nobody."""
    store = with_logs(LOG_LAYOUTS[1])
    bring_to(opened(store).context, 9)
    digest = approved(store, 6)
    claims = FaultPlan(only=lambda call: call.method == "put_if_absent" and call.path.endswith(".claim"))
    attempt(FaultyStorage(copied(store), claims), 6, digest)
    lost = FaultPlan(at=len(claims.calls), fault=Fault.LOST_REPLY, only=claims.only)
    with pytest.raises(InvalidRequestError, match="pending: stop all writers"):
        attempt(FaultyStorage(store, lost), 6, digest)
    (kept,) = opened(store).savepoints()
    plan = UpgradeService(opened(store).context)(6).plan()
    assert plan is not None
    assert f"goes: savepoint {kept.instant} ({kept.comment})" in plan.details
    attempt(store, 6, digest)
    assert opened(store).context.config.version == 6


@pytest.mark.parametrize(("kind", "source", "target"), [("copy-on-write", 6, 9), ("logs", 9, 6)])
def test_after_an_attempt_that_died_anywhere_the_next_one_at_the_same_plan_ends_it(
    kind: str, source: int, target: int
) -> None:
    start = prepared(LAYOUTS[0]) if kind == "copy-on-write" else with_logs(LOG_LAYOUTS[1])
    if source != 6:
        bring_to(opened(start).context, source)
    before, digest = read(start), approved(start, target)
    deaths = 0
    for point in after_each_fault(start, lambda store: attempt(store, target, digest), stride=25):
        store, where = point.store, point.where
        assert read(store) == before, where
        attempt(store, target, digest)
        table = opened(store)
        assert table.context.config.version == target, where
        assert len(table.savepoints()) == 1, where
        assert not store.list(".hoodie/.upgrade"), where
        table.write(rows(NEXT), operation="upsert")
        assert read(store) == before | {NEXT}, where
        deaths += 1
    assert deaths > 1


def died(store: Storage, target: int) -> None:
    """A person's upgrade, which dies once its note is there."""
    counting = FaultPlan()
    bring_to(opened(FaultyStorage(copied(store), counting)).context, target)
    met = [f"{call.method} {call.path}" for call in counting.calls]
    noted = met.index("put_if_absent .hoodie/.upgrade/change.json") + 1
    with pytest.raises(Crash):
        bring_to(opened(FaultyStorage(store, FaultPlan(at=noted + 2, fault=Fault.CRASH_BEFORE))).context, target)
    assert store.list(".hoodie/.upgrade")


def test_what_another_process_has_begun_is_gone_on_with_only_by_a_plan_that_names_it() -> None:
    store = prepared(LAYOUTS[0])
    before, earlier = read(store), approved(store, 9)
    died(store, 9)
    with pytest.raises(UnsupportedTableError, match="is being brought from version 6 to 9"):
        opened(store).write(rows(NEXT), operation="upsert")
    with pytest.raises(WriteConflictError, match="approve that one"):
        attempt(store, 9, earlier)
    with pytest.raises(InvalidRequestError, match="if the process that began it has ended"):
        UpgradeService(opened(store).context)(9).run()
    plan = UpgradeService(opened(store).context)(9).plan()
    assert plan is not None
    assert "approve this only once the process that began it has ended" in plan.details[0]
    attempt(store, 9, plan.digest)
    assert opened(store).context.config.version == 9
    assert read(store) == before


def test_what_another_process_has_begun_is_given_up_by_a_plan_for_the_version_that_is_there() -> None:
    store = prepared(LAYOUTS[0])
    before = read(store)
    died(store, 9)
    attempt(store, 6, approved(store, 6))
    assert opened(store).context.config.version == 6
    assert not store.list(".hoodie/.upgrade")
    opened(store).write(rows(NEXT), operation="upsert")
    assert read(store) == before | {NEXT}


def test_a_run_without_an_approved_plan_needs_none() -> None:
    table = lived("copy-on-write")
    (done,) = table.services.upgrade(9).run()
    assert done.message.startswith("the table was brought from version 6 to 9")
    assert pa.table({"id": ["a", "b"]}).equals(again(table).scan(["id"]).to_arrow().sort_by("id"))


CLEAN = {"hoodie.clean.commits.retained": "1"}


def with_a_clean(version: int) -> tuple[HudiTable, str]:
    """A table whose clean is planned and not executed, and the instant of that."""
    table = new_table(version=version)
    for number in range(3):
        table.upsert(written(("a", "x", number)))
    plan = table.schedule_clean(CLEAN, force=True)
    assert plan is not None
    return table, plan.instant


@pytest.mark.parametrize(("version", "target"), [(6, 9), (9, 6), (8, 9)])
def test_a_clean_that_waits_is_executed_first(version: int, target: int) -> None:
    table, _ = with_a_clean(version)
    before = contents(table)
    listed = len(list_data_files(table.context.storage))
    table = bring(table, target)
    assert contents(table) == before
    assert len(list_data_files(table.context.storage)) < listed
    assert load_timeline(table.context).pending == ()


@pytest.mark.parametrize("version", [6, 8])
def test_a_clean_that_came_meanwhile_is_to_be_executed_which_the_error_says(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, clean = with_a_clean(version)
    monkeypatch.setattr(run, "_prepare", lambda ctx, change: None)
    with pytest.raises(InvalidRequestError, match=f"{clean}.clean.requested is pending: .* end it .hudictl clean "):
        bring_to(again(table).context, 9)
    with pytest.raises(InvalidRequestError, match=f"{clean} is a clean, which cannot be taken back: execute it"):
        again(table).rollback(clean, writers_stopped=True)
    again(table).clean()
    bring_to(again(table).context, 9)
    assert again(table).context.config.version == 9


def test_a_resize_that_waits_is_taken_back_as_the_error_says() -> None:
    table = new_table(**KINDS["merge-on-read"], version=6)
    table.upsert(written(("a", "x", 1)))
    resize = table.services.resize(6).schedule()
    assert resize is not None
    with pytest.raises(InvalidRequestError, match=f"take it back .hudictl rollback .* {resize.instant} --yes"):
        bring_to(again(table).context, 9)
    again(table).rollback(resize.instant, writers_stopped=True)
    assert bring(table, 9).context.config.version == 9
