"""Another table version and the readers of a table: what is planned, held off, refused and told.
Nothing is run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.api.status import PlanStatus, RunStatus
from hudi_operator.plan.effects import Emit, EventType, Launch, SetStatus, Stop
from hudi_operator.plan.observed import Observed
from hudi_operator.plan.service import plan_service
from hudi_operator.plan.table import plan_table
from hudi_operator.plan.versions import holder_of
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table import readers
from hudi_table.model.table.cdc import CDC_ENABLED
from hudi_table.model.table.readers import Fact, Feature, Reads
from tests.support import plans, service_plans
from tests.support.plans import CONFIG, NOW, desired, of, table
from tests.support.service_plans import Story, logged, service

PLAN = PlanStatus("3f2a91bc00112233", "the table has version 6, 9 is asked for", files_before=12, files_after=12)
DRY = ("Upgrade/Plan", "Plan")
RUN = ("Upgrade", "ScheduleAndExecute")
OLD = [{"engine": "Hudi", "version": "0.15"}]
STREAM = RunStatus("flights-feed-x-g1-1", "Ingest/feed", "Running", generation=1, batch="continuous:begin/")


def versioned(version: int) -> Any:
    return logged(config=replace(logged().config, version=version))


def story(to: int = 9, **owner: Any) -> Story:
    found = Story(type="Upgrade", mode="Plan", upgrade={"to": to})
    found.owner |= owner
    return found


def planned(to: int = 9, **owner: Any) -> Story:
    return story(to, **owner).look().end(plan=PLAN).look()


def messages(effects: list[Any]) -> dict[str, str]:
    (status,) = of(SetStatus, effects)
    return {each["type"]: each["message"] for each in status.status["conditions"]}


class TestUpgrade:
    def test_is_planned_without_a_jvm_and_waits_for_its_approval(self) -> None:
        found = story(readers=OLD).look()
        (launch,) = of(Launch, found.effects)
        assert (found.started, launch.spec.engine) == ([DRY], "Local")
        said = {"hoodie.lakeops.upgrade.version": "9", "hoodie.lakeops.readers": "Hudi:0.15"}
        assert launch.spec.work["options"] == said
        found.end(plan=PLAN).look()
        assert (found.state.phase, found.conditions["Ready"]) == ("Planned", ("True", "Planned"))
        assert found.look(3600).started == []

    def test_runs_as_approved_and_once_done_rests(self) -> None:
        found = planned().change(approve=PLAN.digest).look()
        (launch,) = of(Launch, found.effects)
        assert (found.started, launch.spec.work["plan"], launch.spec.engine) == ([RUN], PLAN.digest, "Local")
        found.table = versioned(9)
        found.end(figures={"version": 9.0}).look()
        assert (found.state.phase, found.started) == ("Succeeded", [])
        assert found.look(3600).started == []

    def test_goes_back_by_another_plan_and_there_again_by_a_third(self) -> None:
        found = planned().change(approve=PLAN.digest).look()
        found.table = versioned(9)
        found.end().look()
        for to, digest in ((6, "aa11bb22cc33dd44"), (9, "ee11bb22cc33dd44")):
            assert found.change(upgrade={"to": to}).look().started == [DRY]
            found.end(plan=replace(PLAN, digest=digest)).look()
            assert found.change(approve=digest).look().started == [RUN]
            found.table = versioned(to)
            found.end().look()
            assert found.state.phase == "Succeeded"

    def test_of_a_table_that_has_the_version_starts_nothing(self) -> None:
        found = story(9)
        found.table = versioned(9)
        assert found.look().started == []
        assert found.state.phase == "Succeeded"
        assert "the table has version 9" in messages(found.effects)["Ready"]

    def test_whose_job_died_is_tried_again_at_the_same_plan(self) -> None:
        found = planned().change(approve=PLAN.digest).look()
        found.table = logged(changing=(6, 9))
        found.end("Lost").look()
        assert found.conditions["Reconciling"] == ("True", "Retrying")
        found.look(60)
        (launch,) = of(Launch, found.effects)
        assert (found.started, launch.spec.work["plan"]) == ([RUN], PLAN.digest)

    def test_that_was_left_half_way_is_planned_also_for_the_version_that_is_there(self) -> None:
        found = story(6)
        found.table = logged(changing=(6, 9))
        assert found.look().started == [DRY]

    @pytest.mark.parametrize("beside", ["others", "streams"])
    def test_begins_when_nothing_else_works_on_the_table(self, beside: str) -> None:
        found = planned().change(approve=PLAN.digest)
        found.others = (STREAM,) if beside == "others" else ()
        wanted = service(found.status, found.generation, **found.spec)
        observed = replace(
            service_plans.seen(found.table, runs=found.runs, others=found.others),
            streams=(STREAM,) if beside == "streams" else (),
        )
        effects = plan_service(wanted, observed, found.now)
        assert not of(Launch, effects)
        assert service_plans.conditions(effects)["Reconciling"] == ("True", "Waiting")
        assert "Ingest/feed runs on the table" in messages(effects)["Reconciling"]

    def test_that_a_reader_could_not_read_is_planned_and_its_approval_refused_by_name(self) -> None:
        found = planned(readers=OLD)
        assert found.state.phase == "Planned"
        found.change(approve=PLAN.digest).look()
        assert found.started == []
        assert found.conditions["Stalled"] == ("True", "InvalidSpec")
        assert "Hudi 0.15 cannot read table version 9" in messages(found.effects)["Stalled"]
        found.owner["readers"] = []
        assert found.look().started != []

    def test_of_a_table_that_names_another_version_is_refused(self) -> None:
        found = story(tableVersion=8).look()
        assert found.started == []
        assert "spec.upgrade.to: is 9, but tableVersion of the table says 8" in messages(found.effects)["Stalled"]
        assert story(tableVersion=9).look().started == [DRY]
        options = story(options={"hoodie.write.table.version": "6"}).look()
        assert "option hoodie.table.version of the table says 6" in messages(options.effects)["Stalled"]

    def test_keeps_other_services_waiting_while_it_is_half_way(self) -> None:
        found = Story(logged(changing=(6, 9))).look()
        assert found.started == []
        assert found.conditions["Reconciling"] == ("True", "Upgrading")


class TestHeldTable:
    def effects(self, observed: Observed, **spec: Any) -> list[Any]:
        return plan_table(desired(**spec), observed, NOW)

    def test_starts_nothing_for_a_service_whose_upgrade_is_approved(self) -> None:
        assert of(Launch, self.effects(plans.seen(table())))
        effects = self.effects(plans.seen(table(), upgrade="to-nine"))
        assert not of(Launch, effects)
        assert plans.conditions(effects)["Upgrading"] == ("True", "ByTableService")
        assert plans.conditions(effects)["Reconciling"] == ("True", "Upgrading")
        assert plans.conditions(effects)["Ready"][0] == "True"

    def test_ends_its_continuous_drivers_and_takes_them_up_again(self) -> None:
        kafka = {"type": "Kafka", "format": "json", "kafka": {"brokers": "kafka:9092", "topics": ["orders"]}}
        feed = {"name": "feed", "mode": "Continuous", "source": kafka}
        observed = plans.seen(table(), files=(), runs=(STREAM,), upgrade="to-nine")
        (stop,) = of(Stop, self.effects(observed, ingest=[feed]))
        assert stop.name == STREAM.name
        assert not of(Stop, self.effects(replace(observed, upgrade=""), ingest=[feed]))

    def test_that_was_left_half_way_says_how_it_is_ended_once(self) -> None:
        first = self.effects(plans.seen(table(changing=(6, 9))))
        assert plans.conditions(first)["Upgrading"] == ("True", "HalfWay")
        assert "upgrade.to 9 to go on, or with 6 to give it up" in messages(first)["Upgrading"]
        assert plans.conditions(first)["Stalled"] == ("True", "HalfWay"), "somebody has to act"
        assert [e.reason for e in of(Emit, first) if e.type is EventType.WARNING] == ["HalfWay"]
        (status,) = of(SetStatus, first)
        again = plan_table(desired(status.status), plans.seen(table(changing=(6, 9))), NOW)
        assert not [e for e in of(Emit, again) if e.type is EventType.WARNING]

    def test_is_held_from_an_approval_until_the_upgrade_has_ended_or_stalled(self) -> None:
        found = planned()

        def holder() -> str:
            return holder_of([service(found.status, found.generation, **found.spec)])

        assert holder() == ""
        found.change(approve=PLAN.digest)
        assert holder() == "upkeep"
        found.look()
        assert holder() == "upkeep"
        found.table = versioned(9)
        found.end().look()
        assert holder() == ""
        refused = planned(readers=OLD).change(approve=PLAN.digest).look()
        assert holder_of([service(refused.status, refused.generation, **refused.spec)]) == ""

    def test_whose_manifest_names_another_version_goes_on_and_says_what_to_do(self) -> None:
        effects = self.effects(plans.seen(table()), tableVersion=9)
        (launch,) = of(Launch, effects)
        assert launch.spec.table["tableVersion"] == 6, "the job is told the version that is there"
        assert plans.conditions(effects)["UpgradeNeedsApproval"] == ("True", "VersionChanged")
        assert "upgrade.to 9" in messages(effects)["UpgradeNeedsApproval"]
        assert "UpgradeNeedsApproval" not in plans.conditions(self.effects(plans.seen(table()), tableVersion=6))

    def test_tells_its_version(self) -> None:
        assert plans.status_of(self.effects(plans.seen(table()))).table_version == 6


class TestReaders:
    def effects(self, version: int | None, **spec: Any) -> list[Any]:
        found = table(config=replace(CONFIG, version=version)) if version is not None else None
        return plan_table(desired(**spec), plans.seen(found), NOW)

    @pytest.mark.parametrize(
        ("reader", "version", "said"),
        [
            ("Hudi:0.15", 6, ("True", "AllProven")),
            ("Hudi:0.15", 9, ("False", "CannotRead")),
            ("Sail:1", 6, ("Unknown", "Unproven")),
        ],
    )
    def test_that_are_named_are_judged_by_the_table_as_it_is(
        self, reader: str, version: int, said: tuple[str, str]
    ) -> None:
        engine, _, number = reader.partition(":")
        effects = self.effects(version, readers=[{"engine": engine, "version": number}])
        assert plans.conditions(effects)["ReadersServed"] == said
        assert f"{engine} {number}" in messages(effects)["ReadersServed"]
        warned = [e.reason for e in of(Emit, effects) if e.type is EventType.WARNING]
        assert warned == {"True": [], "False": ["ReaderLost"], "Unknown": ["ReaderUnproven"]}[said[0]]
        assert of(Launch, effects), "a table that is there goes on"
        assert "ReadersServed" not in plans.conditions(self.effects(version))

    @pytest.mark.parametrize(
        ("changes", "reader", "said"),
        [
            ({"options": {"hoodie.write.table.version": "9"}}, "Hudi:0.15", "Hudi 0.15 cannot read table version 9"),
            ({}, "Hudi:0.15", "Hudi 0.15 cannot read table version 9"),
            ({"type": "MergeOnRead"}, "Trino:476", "Trino 476 cannot read merge-on-read by event time"),
            (
                {
                    "type": "MergeOnRead",
                    "tableVersion": 6,
                    "options": {"hoodie.datasource.write.payload.class": "PartialUpdateAvroPayload"},
                },
                "hudi-rs:0.5",
                "hudi-rs 0.5 cannot read merge-on-read by a payload class of partial updates: it refuses the payload class",
            ),
            (
                {"recordKey": ["id", "n"], "partitionBy": [{"field": "at", "type": "Timestamp", "format": "yyyy/MM"}]},
                "hudi-rs:0.5",
                "hudi-rs 0.5 cannot read partition fields that carry their kinds: a custom key generator writes them",
            ),
            (
                {"index": {"type": "PartitionedRecordIndex"}},
                "Hudi:0.15.0",
                "Hudi 0.15.0 cannot read metadata partition partitioned_record_index: a read by that index loses rows",
            ),
        ],
    )
    def test_keep_a_new_table_from_what_one_of_them_cannot_read(
        self, changes: dict[str, Any], reader: str, said: str
    ) -> None:
        engine, _, number = reader.partition(":")
        named = [{"engine": engine, "version": number}]
        effects = self.effects(None, readers=named, **changes)
        assert not of(Launch, effects)
        assert plans.conditions(effects)["Stalled"] == ("True", "InvalidSpec")
        assert f"spec.readers: {said}" in messages(effects)["Stalled"]
        assert of(Launch, self.effects(None, **changes))

    def test_keep_a_table_that_is_there_from_an_index_that_one_of_them_cannot_read(self) -> None:
        index: dict[str, Any] = {"index": {"type": "PartitionedRecordIndex"}}
        simple = table(config=replace(CONFIG, index=None))
        assert "Stalled" in plans.conditions(plan_table(desired(readers=OLD, **index), plans.seen(simple), NOW))
        assert "Stalled" not in plans.conditions(plan_table(desired(**index), plans.seen(simple), NOW))

    def test_keep_an_indexing_from_a_partition_that_one_of_them_cannot_read(self) -> None:
        asked: dict[str, Any] = {"type": "Indexing", "indexing": {"partitions": ["partitioned_record_index"]}}
        found = Story(**asked)
        found.owner |= {"readers": OLD}
        found.look()
        assert found.started == []
        assert "spec.indexing.partitions: Hudi 0.15 cannot read" in messages(found.effects)["Stalled"]
        assert Story(**asked).look().started == [(ServiceType.INDEXING.value, "ScheduleAndExecute")]
        option = {"hoodie.lakeops.indexing.partitions": "files, partitioned_record_index"}
        found = Story(type="Indexing", options=option)
        found.owner |= {"readers": OLD}
        assert found.look().started == []
        said = messages(found.effects)["Stalled"]
        assert "spec.options[hoodie.lakeops.indexing.partitions]: Hudi 0.15 cannot read" in said

    def test_refuse_named_indexes_of_version_6_by_their_names(self) -> None:
        asked: dict[str, Any] = {"type": "Indexing", "indexing": {"indexes": [{"name": "by_n", "column": "n"}]}}
        found = Story(**asked).look()
        assert found.started == []
        assert "spec.indexing.indexes: by_n: indexes of secondary keys" in messages(found.effects)["Stalled"]
        assert "the table has version 6: upgrade it first" in messages(found.effects)["Stalled"]
        by_option = {"hoodie.lakeops.indexing.partitions": "record_index, secondary_index_by_n=n"}
        found = Story(type="Indexing", options=by_option).look()
        assert "spec.options[hoodie.lakeops.indexing.partitions]: by_n: indexes" in messages(found.effects)["Stalled"]
        assert Story(versioned(9), **asked).look().started == [(ServiceType.INDEXING.value, "ScheduleAndExecute")]

    def test_are_told_of_indexes_change_logs_and_columns_of_which_it_is_not_known(self) -> None:
        config = replace(
            CONFIG, version=9, metadata_partitions=("files", "secondary_index_n"), extra={CDC_ENABLED: "true"}
        )
        named = [{"engine": "hudi-rs", "version": "0.5"}, {"engine": "Hudi", "version": "1.2"}]
        seen = plans.seen(replace(table(config=config), columns=("vector", "variant")))
        effects = plan_table(desired(readers=named), seen, NOW)
        assert plans.conditions(effects)["ReadersServed"] == ("Unknown", "Unproven")
        said = messages(effects)["ReadersServed"]
        assert "hudi-rs 0.5 reads change data logs, columns of type VECTOR, columns of type VARIANT, metadata" in said
        assert (
            "index of a secondary key is not known; whether Hudi 1.2 reads change data logs, columns of type VARI"
            in said
        )

    def test_keep_an_indexing_from_an_index_that_one_of_them_cannot_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of none is that known; so a fact of the test's own."""
        asked: dict[str, Any] = {"type": "Indexing", "indexing": {"indexes": [{"name": "by_n", "column": "n"}]}}
        told = Fact("Old", "1", (Feature.SECONDARY_INDEX,), Reads.NO, "here", "it finds no row")
        monkeypatch.setattr(readers, "FACTS", (*readers.FACTS, told))
        found = Story(versioned(9), **asked)
        found.owner |= {"readers": [{"engine": "Old", "version": "1"}]}
        found.look()
        assert found.started == []
        assert (
            "spec.indexing.indexes: Old 1 cannot read index of a secondary key: it finds no row"
            in messages(found.effects)["Stalled"]
        )
