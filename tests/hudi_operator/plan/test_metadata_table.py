"""What is told of a table's metadata table: which partitions are ready, or that a write had to
switch it off."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.status import CONDITION_LENGTH_MAX, Condition
from hudi_operator.plan.effects import Effect, Emit, SetStatus
from hudi_operator.plan.observed import Observed, Problem, TableObservation
from hudi_operator.plan.table import plan_table
from hudi_table.model.table.properties import METADATA_DROPPED, METADATA_PARTITIONS, from_properties, to_properties
from tests.support.plans import CONFIG, FILES, NOW, desired, of, seen, status_of, table

WHY = "a key stands in two file groups, a-0 and b-0"
ALONE = "its partition expr_index_year: this release does not keep it"
REST = "; readers list the folders; a TableService of type Indexing builds it again"
UNSEEN = Observed(problem=Problem("Unavailable", "no answer", retryable=True), failures=1)


def having(*ready: str, why: str | None = None) -> TableObservation:
    """A table whose properties say so."""
    dropped = {} if why is None else {METADATA_DROPPED: why}
    properties = {**to_properties(CONFIG), METADATA_PARTITIONS: ",".join(ready), **dropped}
    return table(*FILES, config=from_properties(properties, "s3://lake/flights"))


def told(found: TableObservation | Observed) -> Condition | None:
    observed = found if isinstance(found, Observed) else seen(found)
    return condition_of(plan_table(desired(), observed, NOW))


def condition_of(effects: list[Effect]) -> Condition | None:
    return next((c for c in status_of(effects).conditions if c.type == "MetadataTable"), None)


class TestTheCondition:
    def test_is_absent_of_a_table_that_has_none_and_lost_none(self) -> None:
        assert told(having()) is None
        assert told(having(why="")) is None
        assert told(Observed()) is None

    def test_names_the_partitions_that_are_ready(self) -> None:
        found = told(having("files", "column_stats"))
        assert found is not None
        assert (found.status, found.reason, found.message) == ("True", "Kept", "ready: column_stats, files")

    def test_says_why_it_was_switched_off_and_what_builds_it_again(self) -> None:
        found = told(having(why=WHY))
        assert found is not None
        assert (found.status, found.reason, found.message) == ("False", "SwitchedOff", WHY + REST)

    def test_goes_by_what_is_ready_where_the_reason_is_still_there(self) -> None:
        found = told(having("files", why=WHY))
        assert found is not None
        assert found.reason == "Kept"

    def test_tells_of_a_partition_that_was_dropped_alone(self) -> None:
        found = told(having("files", why=ALONE))
        assert found is not None
        assert (found.status, found.reason) == ("True", "PartitionDropped")
        assert found.message == f"ready: files; a write dropped {ALONE}"

    def test_leaves_the_table_ready(self) -> None:
        conditions = {c.type: c.status for c in status_of(plan_table(desired(), seen(having(why=WHY)), NOW)).conditions}
        assert (conditions["Ready"], conditions["MetadataTable"]) == ("True", "False")
        assert "Stalled" not in conditions

    @pytest.mark.parametrize("why", ["x" * 100_000, "\u202e" * 100_000, "two\nlines\r\n\tand \x1b[31mcolours"])
    def test_is_one_line_that_the_schema_takes_whatever_the_properties_hold(self, why: str) -> None:
        found = told(having(why=why))
        assert found is not None
        assert len(found.message) <= CONDITION_LENGTH_MAX
        assert found.message.isprintable()
        assert found.message.endswith(REST)

    def test_stays_as_it_was_while_the_table_is_not_seen(self) -> None:
        first = plan_table(desired(), seen(having(why=WHY)), NOW)
        again = plan_table(desired(of(SetStatus, first)[0].status), UNSEEN, NOW + timedelta(hours=1))
        assert condition_of(again) == condition_of(first)


class TestTheEvent:
    def story(self, *looks: TableObservation | Observed, reason: str = "MetadataTableSwitchedOff") -> list[list[str]]:
        """What is told of it at each look."""
        status: dict[str, Any] | None = None
        found = []
        for look in looks:
            effects = plan_table(desired(status), look if isinstance(look, Observed) else seen(look), NOW)
            (document,) = of(SetStatus, effects)
            status = document.status
            events = [e for e in of(Emit, effects) if e.reason == reason]
            assert all(e.type == "Warning" for e in events)
            found.append([e.message for e in events])
        return found

    def test_is_a_warning_once_when_it_was_switched_off(self) -> None:
        off = having(why=WHY)
        assert self.story(having("files"), off, off) == [[], [WHY + REST], []]

    def test_comes_where_the_first_look_finds_it_so(self) -> None:
        assert self.story(having(why=WHY)) == [[WHY + REST]]

    def test_tells_once_of_a_partition_that_was_dropped_alone(self) -> None:
        gone = having("files", why=ALONE)
        told = f"ready: files; a write dropped {ALONE}"
        assert self.story(having("files"), gone, gone, reason="MetadataPartitionDropped") == [[], [told], []]
        assert self.story(gone, having(why=WHY)) == [[], [WHY + REST]]

    def test_comes_again_only_after_it_was_built(self) -> None:
        off = having(why=WHY)
        assert self.story(off, having(why="another reason"), having("files"), off) == [
            [WHY + REST],
            [],
            [],
            [WHY + REST],
        ]

    def test_is_not_repeated_when_the_store_answers_again(self) -> None:
        off = having(why=WHY)
        assert self.story(off, UNSEEN, off) == [[WHY + REST], [], []]

    def test_is_none_where_somebody_switches_it_off_on_purpose(self) -> None:
        assert self.story(having("files"), having()) == [[], []]

    def test_is_none_while_it_is_kept(self) -> None:
        assert self.story(having("files"), having("files", "column_stats")) == [[], []]
