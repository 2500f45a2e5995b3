"""What an ingest from Kafka does with columns that are not its table's, by its policy."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hudi_table.api import open_table
from hudi_table.errors import TableNotFoundError
from hudi_table.sources.checkpoints import current_positions
from hudi_table.table.timeline.active import load_timeline
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker


def schema_of(**kinds: Any) -> dict[str, Any]:
    """Of columns by their types; of one that has had another name by what Avro says of it."""
    fields = [
        {"name": name, "type": kind} if isinstance(kind, str) else {"name": name, **kind}
        for name, kind in {"id": "string", **kinds}.items()
    ]
    return {"type": "record", "name": "Order", "fields": fields}


class AvroFeed(Feed):
    """Messages of the one schema that a file holds, another one with each run."""

    def take(self, policy: str | None, kinds: dict[str, Any], values: dict[str, Any]) -> str:
        """What comes of one message."""
        schema, out = schema_of(**kinds), io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"id": f"k{self.runs}", **values})
        (self.folder / "order.avsc").write_text(json.dumps(schema))
        self.broker.produce(self.topic, [out.getvalue()])
        work = {"schemaPolicy": policy} if policy is not None else {}
        done = self.run(work, avro={"schemaFile": f"file://{self.folder}/order.avsc"})
        return done.error_class or done.outcome


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic())


def offsets(feed: Feed) -> int:
    held = current_positions(feed.open().context, "feed", feed.topic)
    assert held is not None
    return sum(held.positions.topics[feed.topic].offsets.values())


@pytest.mark.parametrize(
    ("kinds", "values", "by"),
    [
        ({"n": "int", "city": "string"}, {"n": 2, "city": "y"}, ["Refuse", "AddColumns", "Widen", "Evolve"]),
        (
            {"n": "int", "city": "string", "at": "long"},
            {"n": 2, "city": "y", "at": 3},
            ["AddColumns", "Widen", "Evolve"],
        ),
        ({"n": "int"}, {"n": 2}, ["AddColumns", "Widen", "Evolve"]),
        ({"n": "long", "city": "string"}, {"n": 2, "city": "y"}, ["Widen", "Evolve"]),
        ({"n": "string", "city": "string"}, {"n": "2", "city": "y"}, []),
    ],
    ids=["the same", "one more", "one less", "a long", "a text"],
)
def test_without_a_policy_messages_are_taken_as_with_widen(
    broker: Broker, tmp_path: Path, kinds: dict[str, str], values: dict[str, Any], by: list[str]
) -> None:
    found = {}
    for policy in (None, "Refuse", "AddColumns", "Widen", "Evolve"):
        folder = tmp_path / str(policy)
        folder.mkdir()
        feed = AvroFeed(folder, broker, broker.topic(partitions=1), form="avro")
        assert feed.take(policy, {"n": "int", "city": "string"}, {"n": 1, "city": "x"}) == "Succeeded"
        found[policy] = feed.take(policy, kinds, values)
    assert found[None] == found["Widen"]
    assert [policy for policy, outcome in found.items() if policy and outcome == "Succeeded"] == by
    assert {outcome for outcome in found.values() if outcome != "Succeeded"} <= {"InvalidSchema"}


def test_what_is_refused_is_not_committed_and_comes_again_for_another_policy(feed: Feed) -> None:
    checks = {"onUndecodable": "Quarantine", "maxErrorRatio": 0.5}
    feed.broker.produce(feed.topic, [row(i) for i in range(10)])
    assert feed.run({"schemaPolicy": "Refuse"}).outcome == "Succeeded"
    commits = len(load_timeline(feed.open().context).commits)
    feed.broker.produce(feed.topic, [row(10, city="x"), b"{"])
    for _ in range(2):
        refused = feed.run({"schemaPolicy": "Refuse", **checks})
        assert refused.error_class == "InvalidSchema"
        assert "added: city (string)" in refused.message
        assert "give schemaPolicy AddColumns" in refused.message
        assert (len(load_timeline(feed.open().context).commits), offsets(feed)) == (commits, 10)
        with pytest.raises(TableNotFoundError):
            open_table(f"file://{feed.location}_errors")
    done = feed.run({"schemaPolicy": "AddColumns", **checks})
    assert (done.outcome, done.figures["recordsRefused"]) == ("Succeeded", 1)
    assert [each["city"] for each in feed.rows("id", "city")] == [None, None, "x", *[None] * 8]
    assert offsets(feed) == 12


def test_a_key_that_messages_of_json_lack_is_a_null_and_no_missing_column(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1, city="x")])
    assert feed.run({"schemaPolicy": "Refuse"}).outcome == "Succeeded"
    feed.broker.produce(feed.topic, [row(2)])
    assert feed.run({"schemaPolicy": "Refuse"}).outcome == "Succeeded"
    assert [each["city"] for each in feed.rows("id", "city")] == ["x", None]


def test_a_commit_without_a_row_has_no_columns_to_refuse(feed: Feed) -> None:
    shaped = {"schemaPolicy": "Refuse", "transform": [{"sql": "select *, upper(id) as name from source"}]}
    feed.broker.produce(feed.topic, [row(1)])
    assert feed.run(shaped, tombstones="Ignore").outcome == "Succeeded"
    feed.broker.produce(feed.topic, [(b"k1", None)])
    done = feed.run(shaped, tombstones="Ignore")
    assert done.outcome == "Succeeded", done.message
    assert offsets(feed) == 2


def test_tombstones_are_no_difference_of_columns(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1, city="x"), row(2)])
    assert feed.run({"schemaPolicy": "Refuse"}).outcome == "Succeeded"
    feed.broker.produce(feed.topic, [(b"k1", None)])
    done = feed.run({"schemaPolicy": "Refuse"}, tombstones="Delete")
    assert done.outcome == "Succeeded", done.message
    assert [each["id"] for each in feed.rows()] == ["k2"]


PRICE = {"type": "long", "aliases": ["n"]}


@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def test_a_field_that_was_renamed_fills_the_column_of_its_old_name(broker: Broker, tmp_path: Path, engine: str) -> None:
    feed = AvroFeed(tmp_path, broker, broker.topic(partitions=1), form="avro", engine=engine)
    assert feed.take("Evolve", {"n": "int"}, {"n": 1}) == "Succeeded"
    assert feed.take("Evolve", {"price": PRICE}, {"price": 2}) == "Succeeded"
    assert [(each["id"], each["n"]) for each in feed.rows()] == [("k0", 1), ("k1", 2)]
    schema = feed.open().schema()
    assert schema is not None
    assert "price" not in schema.names
    # Another policy takes it for a new column.
    assert feed.take("Widen", {"price": PRICE}, {"price": 3}) == "Succeeded"
    assert [(each["n"], each["price"]) for each in feed.rows("id", "n", "price")] == [(1, None), (2, None), (None, 3)]


def test_a_transform_reads_a_renamed_field_by_the_name_of_the_column_that_it_hands_on(feed: Feed) -> None:
    avro = AvroFeed(feed.folder, feed.broker, feed.topic, form="avro")
    avro.work = {"transform": [{"sql": "select id, n, n > 1 as large from source"}]}
    assert avro.take("Evolve", {"n": "long"}, {"n": 1}) == "Succeeded"
    assert avro.take("Evolve", {"price": PRICE}, {"price": 2}) == "Succeeded"
    assert [(each["n"], each["large"]) for each in avro.rows("id", "n", "large")] == [(1, False), (2, True)]


@pytest.mark.parametrize(
    ("kinds", "values", "said"),
    [
        ({"n": "int", "price": PRICE}, {"n": 2, "price": 3}, "fields 'n' and 'price' both claim column 'n'"),
        ({"price": {"type": "string", "aliases": ["n"]}}, {"price": "3"}, "changed: n int32 -> string"),
    ],
)
def test_a_rename_that_cannot_be_is_refused_and_nothing_is_committed(
    broker: Broker, tmp_path: Path, kinds: dict[str, Any], values: dict[str, Any], said: str
) -> None:
    feed = AvroFeed(tmp_path, broker, broker.topic(partitions=1), form="avro")
    assert feed.take("Evolve", {"n": "int"}, {"n": 1}) == "Succeeded"
    feed.work = {"onUndecodable": "Quarantine", "maxErrorRatio": 1.0}
    assert feed.take("Evolve", kinds, values) == "InvalidSchema"
    assert said in feed.result().message
    assert (offsets(feed), len(feed.rows())) == (1, 1)
