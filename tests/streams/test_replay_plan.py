"""What an ingest has passed over, as its commits tell, and the Backfill that reads it again; on a
real broker."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.api.ingests.ingest import IngestSpec
from hudi_operator.api.schema import fields_of
from hudi_table.cli.program import main as hudictl
from hudi_table.model.job.positions import Skipped, SkipReason
from hudi_table.services.replaying import KEPT_FIELDS, Gap, backfills
from hudi_table.sources.checkpoints import current_positions
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.aged import AgedStorage
from tests.support.crashes import opened
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker
from tests.support.kubelet import eventually
from tests.support.operated import Place, condition
from tests.support.page_blocks import every_block

ORDERED = {"orderingFields": ["n"], "mergeMode": "EventTime"}
GOES_ON: dict[str, Any] = {"onDataLoss": "Continue"}


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic(partitions=2), table=ORDERED)


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Place:
    return Place(tmp_path, broker, broker.topic(partitions=2))


def skipped(feed: Feed) -> tuple[Skipped, ...]:
    found = current_positions(feed.open().context, "feed", feed.topic)
    assert found is not None
    return found.positions.skipped


def lose(feed: Feed) -> None:
    """Ten messages are taken, ten are deleted unread, five are there."""
    feed.broker.produce(feed.topic, [row(i) for i in range(10)], partition=0)
    feed.run()
    feed.broker.produce(feed.topic, [row(i) for i in range(10, 25)], partition=0)
    feed.broker.forget(feed.topic, 0, 20)


def planned(capsys: pytest.CaptureFixture[str], base: str, *more: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert hudictl(["checkpoint", "replay-plan", base, "feed", "-o", "json", *more]) == 0
    return list(json.loads(capsys.readouterr().out)["items"])


def test_the_commit_that_passes_messages_over_says_which_and_the_next_does_not(feed: Feed) -> None:
    lose(feed)
    done = feed.run(**GOES_ON)
    assert done.outcome == "Succeeded", done.message
    assert skipped(feed) == (Skipped(SkipReason.DELETED, feed.topic, 0, 10, 20),)
    feed.broker.produce(feed.topic, [row(99)], partition=1)
    feed.run(**GOES_ON)
    assert skipped(feed) == ()


def test_a_driver_tells_what_it_passes_over_in_its_first_commit_alone(feed: Feed) -> None:
    lose(feed)
    driver = feed.start(work={"mode": "Continuous", "commitIntervalSeconds": 0.2}, **GOES_ON)
    try:
        eventually(lambda: len(feed.rows()) == 15, "it goes on without them")
        assert skipped(feed) == (Skipped(SkipReason.DELETED, feed.topic, 0, 10, 20),)
        feed.broker.produce(feed.topic, [row(99)], partition=1)
        eventually(lambda: len(feed.rows()) == 16, "it follows")
        assert skipped(feed) == ()
    finally:
        driver.send_signal(signal.SIGTERM)
        driver.wait(60)


def test_the_plan_tells_ranges_commits_and_times(feed: Feed, capsys: pytest.CaptureFixture[str]) -> None:
    lose(feed)
    feed.run(**GOES_ON)
    (gap,) = planned(capsys, str(feed.location))
    assert {name: gap[name] for name in ("topic", "partition", "from", "to", "messages", "reason")} == {
        "topic": feed.topic, "partition": 0, "from": 10, "to": 20, "messages": 10, "reason": "Deleted",
    }  # fmt: skip
    assert gap["after"] < gap["by"]
    assert gap["newestBefore"] <= gap["newestAfter"]
    assert gap["thereFrom"] is None
    assert hudictl(["checkpoint", "replay-plan", str(feed.location), "other"]) != 0
    assert "no commit holds a checkpoint of ingest 'other'" in capsys.readouterr().err


def test_a_topic_that_was_made_again_is_told_as_a_whole(feed: Feed, capsys: pytest.CaptureFixture[str]) -> None:
    feed.broker.produce(feed.topic, [row(i) for i in range(10)], partition=0)
    feed.run()
    feed.broker.delete(feed.topic)
    feed.broker.topic(feed.topic)
    feed.broker.produce(feed.topic, [row(50)], partition=0)
    feed.run(**GOES_ON)
    (gap,) = planned(capsys, str(feed.location))
    assert (gap["reason"], gap["partition"], gap["messages"]) == ("Recreated", None, None)


def commands_of(page: str) -> list[str]:
    found = [command for block in every_block() if block.page == page for command in block.commands()]
    assert len(found) == 3
    return found


def test_a_backfill_reads_what_somebody_has_passed_over(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.broker.produce(place.topic, [row(i) for i in range(10)], partition=0)
    document = place.document(of=ORDERED)
    place.apply(document)
    place.broker.produce(place.topic, [row(i) for i in range(10, 30)], partition=0)
    place.broker.produce(place.topic, [row(i) for i in range(30, 35)], partition=1)
    base = f"file://{place.location}"
    assert hudictl(["checkpoint", "set", base, "feed", f"{place.topic},0:25"]) == 0
    place.apply(document)
    assert place.count() == 20
    place.broker.forget(place.topic, 0, 13)
    for command in commands_of("docs/how-to/backfill.md"):
        words = [
            {"s3://lake/orders": base, "orders": "feed", "orders.yaml": str(place.folder / "manifest.yaml")}.get(
                word, word
            )
            for word in command.split()
        ]
        assert hudictl(words[1:]) == 0, command
    manifest = str(place.folder / "manifest.yaml")
    (gap,) = planned(capsys, base, "--manifest", manifest)
    assert [gap[n] for n in ("reason", "from", "to", "thereFrom", "thereTo")] == ["Set", 10, 25, 13, 25]
    assert hudictl(["checkpoint", "replay-plan", base, "feed", "--manifest", manifest, "--backfill"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    old, replay = found["spec"]["ingest"]
    assert (old["name"], replay["mode"]) == ("feed", "Backfill")
    assert replay["source"]["kafka"]["startFrom"]["offsets"] == [f"{place.topic},0:13"]
    ready = place.apply(found)
    assert condition(ready, "Ready")["status"] == "True", place.lines
    assert place.count() == 32, "all but three that are deleted"
    assert hudictl(["checkpoint", "replay-plan", base, "feed", "--manifest", manifest, "--backfill"]) == 0
    assert len(yaml.safe_load(capsys.readouterr().out)["spec"]["ingest"]) == 2, "of the same ranges there is one"


def test_what_is_read_again_after_a_step_back_is_no_gap(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.broker.produce(place.topic, [row(i) for i in range(30)], partition=0)
    place.apply(place.document())
    base = f"file://{place.location}"
    for offset in (40, 35, 10, 20):
        assert hudictl(["checkpoint", "set", base, "feed", f"{place.topic},0:{offset}"]) == 0
    found = planned(capsys, base)
    assert [(each["from"], each["to"]) for each in found] == [(10, 20)]


def test_commits_that_are_archived_tell_of_it_too(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.broker.produce(place.topic, [row(i) for i in range(10)], partition=0)
    place.apply(place.document())
    base = f"file://{place.location}"
    for offset in (20, 30, 31, 32, 33, 34):
        assert hudictl(["checkpoint", "set", base, "feed", f"{place.topic},0:{offset}"]) == 0
    before = planned(capsys, base)
    held = len(load_timeline(place.table().context).commits)
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    assert opened(AgedStorage(open_storage(base))).archive(keep)
    assert len(load_timeline(place.table().context).commits) < held
    assert planned(capsys, base) == before
    assert [(each["from"], each["to"]) for each in before][:2] == [(10, 20), (20, 30)]


def test_what_stands_still_is_planned_and_what_is_gone_is_said_to_be(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.broker.produce(place.topic, [row(i) for i in range(10)], partition=0)
    place.apply(place.document())
    place.broker.produce(place.topic, [row(i) for i in range(10, 30)], partition=0)
    place.broker.forget(place.topic, 0, 25)
    assert condition(place.apply(place.document()), "Stalled")["reason"] == "DataLoss"
    base, manifest = f"file://{place.location}", str(place.folder / "manifest.yaml")
    assert hudictl(["checkpoint", "replay-plan", base, "feed", "--manifest", manifest, "-o", "json"]) == 0
    said = capsys.readouterr()
    (gap,) = json.loads(said.out)["items"]
    assert (gap["from"], gap["to"], gap["by"], gap["thereFrom"]) == (10, 25, None, None)
    assert "the brokers have none of it any more" in said.err
    assert hudictl(["checkpoint", "replay-plan", base, "feed", "--manifest", manifest, "--backfill"]) == 1
    assert "no Backfill can give it back" in capsys.readouterr().err


def test_a_backfill_of_a_table_without_an_order_is_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.broker.produce(place.topic, [row(i) for i in range(30)], partition=0)
    place.apply(place.document(of={"orderingFields": [], "mergeMode": "CommitTime"}, startFrom={"position": "Offsets", "offsets": [f"{place.topic},0:20"]}))  # fmt: skip
    base, manifest = f"file://{place.location}", str(place.folder / "manifest.yaml")
    assert hudictl(["checkpoint", "set", base, "feed", f"{place.topic},0:10"]) == 0
    assert hudictl(["checkpoint", "set", base, "feed", f"{place.topic},0:15"]) == 0
    assert hudictl(["checkpoint", "replay-plan", base, "feed", "--manifest", manifest, "--backfill"]) == 1
    assert "needs orderingFields and mergeMode EventTime" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--backfill"], "--backfill needs --manifest FILE"),
        (["orders,0:1"], "needs INGEST alone"),
        (["--manifest", "/nowhere.yaml"], "cannot be read"),
        (["--manifest", "other"], "holds no HudiTable with an ingest 'feed'"),
        (["--manifest", "files"], "has no source.kafka"),
    ],
)
def test_what_is_asked_wrongly_is_named(
    feed: Feed, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    feed.broker.produce(feed.topic, [row(1)], partition=0)
    feed.run()
    for name, source in (("other", None), ("files", {"type": "Files"})):
        ingest = [{"name": "feed", "source": source}] if source else []
        (feed.folder / name).write_text(yaml.safe_dump({"kind": "HudiTable", "spec": {"ingest": ingest}}))
    asked = [str(feed.folder / each) if each in ("other", "files") else each for each in more]
    assert hudictl(["checkpoint", "replay-plan", str(feed.location), "feed", *asked]) != 0
    assert said in capsys.readouterr().err


MADE_FIELDS = {"name", "mode", "source"}
LEFT_FIELDS = {
    "operation": "a Backfill upserts, as an ingest without the field does",
    "dropDuplicates": "of operation Insert",
    "schedule": "of mode Scheduled",
    "timeZone": "of a schedule",
    "startingDeadlineSeconds": "of a schedule",
    "commitInterval": "of mode Continuous",
    "freshness": "of what comes, and nothing comes to a range",
    "activeDeadline": "of runs of another length",
}


def test_each_field_of_an_ingest_is_in_a_backfill_or_left_out_for_a_reason() -> None:
    assert {*MADE_FIELDS, *KEPT_FIELDS, *LEFT_FIELDS} == set(fields_of(IngestSpec))
    assert len(MADE_FIELDS) + len(KEPT_FIELDS) + len(LEFT_FIELDS) == len(fields_of(IngestSpec))


def test_a_backfill_takes_the_columns_that_the_ingest_takes() -> None:
    asked = {
        "name": "feed",
        "mode": "Continuous",
        "commitInterval": "2s",
        "source": {"type": "Kafka", "kafka": {"topicPattern": "o.*"}},
        **dict.fromkeys(KEPT_FIELDS, "kept"),
        "schemaPolicy": "AddColumns",
    }
    gap = Gap(Skipped(SkipReason.DELETED, "orders", 0, 10, 20), "one", "", "", there=(12, 20))
    (made,) = backfills(asked, [gap])
    assert made["schemaPolicy"] == "AddColumns", "else it widens columns that the ingest refuses to widen"
    assert made.keys() == MADE_FIELDS | set(KEPT_FIELDS)
