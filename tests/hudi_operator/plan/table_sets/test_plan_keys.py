"""Record keys that are those of the topics: read before a HudiTable is made, told where they cannot
be, and never changed after."""

from __future__ import annotations

from typing import Any

from hudi_operator.api.resources import desired_set
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.table_sets.plan import AGAIN_SECONDS, LISTED_SECONDS
from hudi_operator.plan.table_sets.wanted import keyless
from tests.support.manifests import manifest, stored
from tests.support.set_manifests import SOURCE, set_spec
from tests.support.sets import NAME, Story, story

KEYED: dict[str, Any] = {
    "recordKey": ["{key}"],
    "ingest": [{"name": "feed", "source": {**SOURCE, "kafka": {**SOURCE["kafka"], "keyFormat": "json"}}}],
}
EMPTY = Problem("InvalidData", "topic b has no message yet")


def keyed(topics: list[str], **changes: Any) -> Story:
    return story(topics, KEYED, **changes)


def keys_of(shop: Story) -> dict[str, list[str]]:
    return {name: table["spec"]["recordKey"] for name, table in shop.tables.items()}


def test_a_table_has_the_columns_of_its_topics_key() -> None:
    shop = keyed(["a", "b"])
    shop.keys = {"a": ("id",), "b": ("order_id", "position")}
    shop.settles()
    assert keys_of(shop) == {"a": ["id"], "b": ["order_id", "position"]}
    assert shop.condition("Ready") == ("True", "TablesReady")
    assert shop.wait == LISTED_SECONDS


def test_no_table_is_made_before_its_key_is_read_and_the_next_look_comes_soon() -> None:
    shop = keyed(["a", "b"])
    shop.keys = {"a": ("id",)}
    assert [each.topic for each in shop.look()] == ["a"]
    assert not shop.look()
    assert shop.condition("Ready") == ("False", "WritingTables")
    assert "1 HudiTable of 2 to be written" in shop.message("Ready")
    assert (shop.status.failing, shop.wait) == ((), AGAIN_SECONDS)
    shop.keys["b"] = ("id",)
    shop.settles()
    assert keys_of(shop) == {"a": ["id"], "b": ["id"]}


def test_a_key_that_cannot_be_read_keeps_its_topic_alone_from_its_table() -> None:
    shop = keyed(["a", "b"])
    shop.keys = {"a": ("id",), "b": EMPTY}
    shop.settles()
    assert shop.tables.keys() == {"a"}
    assert shop.condition("Ready") == ("False", "TopicsRefused")
    assert "b: topic b has no message yet" in shop.message("Ready")
    assert shop.wait == LISTED_SECONDS


def test_a_table_keeps_its_key_when_that_of_its_topic_changes() -> None:
    shop = keyed(["a"])
    shop.keys = {"a": ("id",)}
    shop.settles()
    shop.keys = {"a": ("other",)}
    shop.spec["template"]["spec"]["files"] = {"targetSize": "60Mi"}
    shop.settles()
    assert keys_of(shop) == {"a": ["id"]}
    assert shop.tables["a"]["spec"]["files"]["targetSize"] == "60Mi"


def test_columns_stand_beside_the_key_and_an_override_may_name_others() -> None:
    shop = story(
        ["a", "b"],
        {**KEYED, "recordKey": ["tenant", "{key}"]},
        overrides=[{"topic": "b", "spec": {"recordKey": ["n"]}}],
    )
    shop.keys = {"a": ("id", "tenant")}
    shop.settles()
    assert keys_of(shop) == {"a": ["tenant", "id"], "b": ["n"]}


def test_keys_are_read_of_topics_that_are_to_have_a_table_and_have_none() -> None:
    shop = keyed(["a", "b", "c", "d"], maxTables=3, overrides=[{"topic": "b", "spec": {"recordKey": ["n"]}}])
    assert keyless(shop.desired, shop.listed or (), ()) == ("a", "c")
    shop.keys = {"a": ("id",)}
    shop.look()
    assert keyless(shop.desired, shop.listed or (), tuple(shop.tables.values())) == ("c",)


def test_the_placeholder_of_the_key_belongs_to_the_record_key_alone() -> None:
    wrong = set_spec({**KEYED, "location": "s3://lake/{topic}/{key}"})
    errors = desired_set(stored(manifest(NAME, "HudiTableSet", **wrong))).errors
    assert [each.path for each in errors] == ["spec.template.spec.location"]
    assert "no placeholder is named {key}" in errors[0].message
