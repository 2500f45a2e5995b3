"""What the doctor puts aside is used by nobody, is never lost, and can be put back.

Aspects: what may move; crashes; what lies in the way; the service and the verb.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from hudi_table.api import HudiTable
from hudi_table.cli import main
from hudi_table.errors import CorruptTableError, InvalidOptionError, InvalidRequestError, UnavailableError
from hudi_table.metadata.port import open_context
from hudi_table.model.service.findings import Check, Severity
from hudi_table.model.service.services import ServiceRequest, ServiceType
from hudi_table.services.doctor.quarantine import quarantine, quarantines
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import copied
from tests.support.damaged import after_start, base_of, found, orphan_of, written
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.written import contents, new_table, rows


def test_orphans_are_put_aside_and_can_be_put_back():
    table = written()
    before = contents(table)
    path = orphan_of(table, after_start(table))
    data = table.context.storage.get(path)
    made = table.quarantine(table.doctor())
    assert [item.path for item in made.files] == [path]
    assert found(table) == []
    assert contents(table) == before
    assert table.context.storage.get(f".hoodie/.quarantine/{made.time}/{path}") == data
    assert quarantines(table.context) == [made]
    table.put_back(made.time)
    assert table.context.storage.get(path) == data
    assert table.context.storage.list(".hoodie/.quarantine") == []
    assert [f.path for f in found(table)] == [path]


def test_a_file_that_a_visible_slice_uses_is_never_put_aside():
    table = written()
    path = base_of(table).path
    orphan = orphan_of(table, load_timeline(table.context).commits[-1].time, data=b"no Parquet")
    table.context.storage.put(path, b"broken")
    findings = table.doctor()
    assert {path, orphan} <= {f.path for f in findings}
    assert table.quarantine(findings) is None
    assert table.context.storage.get(path) == b"broken"


def test_an_invalid_file_of_a_replaced_group_is_still_used_by_earlier_readers():
    table = written()
    path = base_of(table).path
    table.write(rows(("n", "x", 1)), operation="insert_overwrite")
    table.context.storage.put(path, b"broken")
    assert [f.severity for f in found(table, Check.INVALID_PARQUET)] == [Severity.WARNING]
    assert table.quarantine(table.doctor()) is None


def test_a_finding_that_has_become_untrue_moves_nothing():
    table = written()
    path = orphan_of(table, after_start(table))
    findings = table.doctor()
    table.context.storage.delete(path)
    assert table.quarantine(findings) is None


def test_a_crash_at_any_call_of_a_quarantine_loses_nothing():
    start = written()
    path = orphan_of(start, after_start(start))
    store = start.context.storage
    data, findings = store.get(path), start.doctor()
    counting = FaultPlan()
    quarantine(open_context(FaultyStorage(copied(store), counting)), findings)
    calls = [call.number for call in counting.calls if call.writes]
    for number in calls:
        for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_REPLY):
            twin = copied(store)
            with contextlib.suppress(Crash, UnavailableError):
                quarantine(open_context(FaultyStorage(twin, FaultPlan(at=number, fault=fault))), findings)
            table = HudiTable(open_context(twin))
            table.quarantine(table.doctor())
            assert found(table) == []
            for made in quarantines(table.context):
                table.put_back(made.time)
            assert twin.get(path) == data, f"{fault} at {number}"


def test_putting_back_refuses_an_unknown_time_and_a_file_in_the_way():
    table = written()
    path = orphan_of(table, after_start(table))
    made = table.quarantine(table.doctor())
    with pytest.raises(InvalidRequestError, match=f"nothing was put aside at '1'; there is {made.time}"):
        table.put_back("1")
    table.context.storage.put(path, b"other")
    with pytest.raises(InvalidRequestError, match="move it away first"):
        table.put_back(made.time)


def test_a_manifest_that_cannot_be_read_is_said():
    table = written()
    table.context.storage.put(".hoodie/.quarantine/1/manifest.json", b"{}")
    with pytest.raises(CorruptTableError, match=r"manifest\.json cannot be read"):
        quarantines(table.context)


def test_the_service_reports_and_moves_only_if_asked():
    table = written()
    assert table.services.repair.plan() is None
    path = orphan_of(table, after_start(table))
    plan = table.services.repair.plan()
    assert plan is not None
    assert (plan.why, plan.files_before) == ("1 × OrphanFile", 1)
    assert path in plan.details[0]
    (done,) = table.services.repair.run()
    assert done.figures["errors"] == 1
    assert table.context.storage.head(path)
    by_option = ServiceRequest({"hoodie.lakeops.repair.quarantine": "true"})
    (done,) = table.services.of_type(ServiceType.REPAIR, by_option).run()
    assert done.figures["filesQuarantined"] == 1
    assert found(table) == []
    orphan_of(table, after_start(table))
    (done,) = table.services.repair(quarantine=True).run()
    assert done.figures["filesQuarantined"] == 1
    with pytest.raises(InvalidOptionError, match="neither 'true' nor 'false'"):
        table.services.of_type(ServiceType.REPAIR, ServiceRequest({"hoodie.lakeops.repair.keys": "yes"})).run()


def test_the_verb_prints_findings_moves_on_yes_and_puts_back(tmp_path: Path, capsys):
    base = tmp_path / "t"
    table = new_table(str(base))
    table.upsert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    assert main(["doctor", str(base)]) == 0
    path = orphan_of(table, after_start(table))
    assert main(["doctor", str(base), "-o", "name"]) == 3
    assert capsys.readouterr().out == f"{path}\n"
    assert main(["doctor", str(base), "--quarantine"]) == 3
    assert (base / path).exists()
    assert main(["doctor", str(base), "--quarantine", "--yes"]) == 0
    assert not (base / path).exists()
    time = capsys.readouterr().err.rpartition("--put-back ")[2].split()[0]
    assert main(["doctor", str(base), "--put-back", time]) == 0
    assert (base / path).exists()
