"""`plan_table`: the status that it writes and the events that it tells."""

from __future__ import annotations

from datetime import timedelta

from hudi_operator.api.status import UpkeepStatus
from hudi_operator.plan.effects import Emit, SetStatus
from hudi_operator.plan.observed import FileFact, Trace
from hudi_operator.plan.table import plan_table
from hudi_table.model.service.services import ServiceType
from tests.support.plans import FILES, NOW, conditions, desired, of, run_after, seen, status_of, table


class TestTheStatus:
    def test_says_nothing_is_there_when_nothing_is(self) -> None:
        effects = plan_table(desired(), seen(files=()), NOW)
        assert conditions(effects)["Ready"] == ("False", "NoTable")
        assert "Stalled" not in conditions(effects)
        assert status_of(effects).timeline is None

    def test_keeps_the_time_of_a_condition_until_it_changes(self) -> None:
        status = of(SetStatus, plan_table(desired(), seen(table(*FILES)), NOW))[0].status
        later = plan_table(desired(status), seen(table(*FILES)), NOW + timedelta(days=1))
        assert {c.last_transition_time for c in status_of(later).conditions} == {"2026-01-02T00:00:00Z"}
        changed = plan_table(desired(status), seen(table()), NOW + timedelta(days=1))
        times = {c.type: c.last_transition_time for c in status_of(changed).conditions}
        assert times["Fresh"] == "2026-01-03T00:00:00Z"
        assert times["Ready"] == "2026-01-02T00:00:00Z"

    def test_is_the_same_when_nothing_changed(self) -> None:
        status = of(SetStatus, plan_table(desired(), seen(table(*FILES)), NOW))[0].status
        again = plan_table(desired(status), seen(table(*FILES)), NOW + timedelta(hours=1))
        assert of(SetStatus, again)[0].status == status
        assert not of(Emit, again)

    def test_tells_each_thing_once(self) -> None:
        first = plan_table(desired(), seen(), NOW)
        assert [emit.reason for emit in of(Emit, first)] == ["Started"]
        failed = run_after(first, "Failed", reason="InvalidData", message="column 'id' is null in 3 rows")
        second = plan_table(desired(of(SetStatus, first)[0].status), seen(runs=(failed,)), NOW)
        assert [(e.type, e.reason) for e in of(Emit, second)] == [("Warning", "InvalidData")]
        third = plan_table(desired(of(SetStatus, second)[0].status), seen(runs=(failed,)), NOW)
        assert not of(Emit, third)

    def test_tells_what_failed_on_one_line_without_what_a_terminal_obeys(self) -> None:
        first = plan_table(desired(), seen(), NOW)
        failed = run_after(first, "Failed", reason="InvalidData", message="in file a\n\x1b[2J\u202eb")
        (told,) = of(Emit, plan_table(desired(of(SetStatus, first)[0].status), seen(runs=(failed,)), NOW))
        assert told.message.endswith("in file a\\n\\x1b[2J\\u202eb")

    def test_counts_small_files_by_the_limit_of_the_manifest(self) -> None:
        small = tuple(FileFact(f"p{i}", 1 << 20, 10) for i in range(10))
        effects = plan_table(desired(), seen(table(*FILES, files=small)), NOW)
        assert conditions(effects)["WellSized"] == ("False", "SmallFiles")
        data = status_of(effects).data
        assert data is not None
        assert (data.small_file_ratio, data.records, data.partitions) == ("1.00", 100, 10)
        fine = plan_table(desired(files={"smallFileLimit": "512Ki"}), seen(table(*FILES, files=small)), NOW)
        assert conditions(fine)["WellSized"] == ("True", "WellSized")

    def test_does_not_guess_a_number_of_records(self) -> None:
        files = (FileFact("p", 1, 5), FileFact("p", 1, None))
        data = status_of(plan_table(desired(), seen(table(*FILES, files=files)), NOW)).data
        assert data is not None
        assert data.records is None

    def test_tells_what_services_have_left_on_the_timeline(self) -> None:
        traces = {
            ServiceType.COMPACTION: Trace(("20260101000000003",), "20260101000000001", 2),
            ServiceType.CLEANING: Trace(commits_since=7),
        }
        found = status_of(plan_table(desired(), seen(table(*FILES, traces=traces, timeline_files=9)), NOW))
        assert found.services == (
            UpkeepStatus("Cleaning", None, 7),
            UpkeepStatus("Compaction", "20260101000000001", 2, ("20260101000000003",)),
        )
        assert found.timeline is not None
        assert found.timeline.files == 9

    def test_shows_the_event_times_that_writes_record(self) -> None:
        def shown(*times: int) -> tuple[str | None, str | None]:
            found = status_of(plan_table(desired(), seen(table(*FILES, event_times=times or None)), NOW)).timeline
            assert found is not None
            return found.min_event_time, found.watermark

        assert shown(1767225600000, 1767225661500) == ("2026-01-01T00:00:00Z", "2026-01-01T00:01:01Z")
        assert shown() == (None, None)
        # Any engine writes any number there.
        assert shown(-(1 << 62), 1 << 62) == (None, None)

    def test_keeps_a_watermark_whose_commit_is_archived_or_taken_back(self) -> None:
        day = 1767225600000
        first = plan_table(desired(), seen(table(*FILES, event_times=(day, day + 60_000))), NOW)
        status = of(SetStatus, first)[0].status
        for left, least in (((day - 9_000, day), "2025-12-31T23:59:51Z"), (None, "2026-01-01T00:00:00Z")):
            found = status_of(plan_table(desired(status), seen(table(*FILES, event_times=left)), NOW)).timeline
            assert found is not None
            assert (found.min_event_time, found.watermark) == (least, "2026-01-01T00:01:00Z")
        assert status_of(plan_table(desired(status), seen(), NOW)).timeline is None

    def test_names_failed_writes(self) -> None:
        effects = plan_table(desired(), seen(table(*FILES, suspects=("20260101000000001.inflight",))), NOW)
        assert conditions(effects)["Clean"] == ("False", "FailedWrites")

    def test_names_the_hudi_generation_that_must_not_write_keys_with_colons(self) -> None:
        (note,) = status_of(plan_table(desired(), seen(table(colon_keys=True)), NOW)).notes
        assert note.reason == "ColonKeys"
        assert "Hudi 1.x must not write" in note.message
        assert not status_of(plan_table(desired(), seen(table(colon_keys=False)), NOW)).notes
