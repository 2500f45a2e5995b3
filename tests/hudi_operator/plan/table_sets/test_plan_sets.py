"""What becomes of topics: HudiTables that come, follow the template, and stay or go; and what keeps
one topic from its table and no other."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.names import SET, TOPIC
from hudi_operator.plan.effects import ChangeTable, MakeTable, RemoveTable
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule.runs import rfc3339
from tests.support.set_manifests import EVENTS, SOURCE, TABLE
from tests.support.sets import NAME, story

AWAY = Problem("Unavailable", "the brokers do not answer", retryable=True)


def test_each_topic_has_a_table_of_its_own_that_the_set_owns() -> None:
    shop = story(["orders-eu", "orders_US"])
    shop.settles()
    assert shop.locations() == {"orders-eu": "s3://lake/orders-eu", "orders-us": "s3://lake/orders_US"}
    eu = shop.tables["orders-eu"]
    assert eu["metadata"]["labels"] == {SET: NAME}
    assert eu["metadata"]["annotations"] == {TOPIC: "orders-eu"}
    (owner,) = eu["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("HudiTableSet", NAME, True)
    assert eu["spec"]["ingest"][0]["source"]["kafka"]["topics"] == ["orders-eu"]
    assert shop.condition("Ready") == ("True", "TablesReady")
    assert (shop.status.topics, shop.status.tables, shop.status.ready_tables) == (2, 2, 2)


def test_a_topic_that_comes_has_a_table_and_the_others_are_left_alone() -> None:
    shop = story(["a"]).settles()
    shop.listed = ("a", "b")
    (write,) = shop.look()
    assert isinstance(write, MakeTable)
    assert write.topic == "b"
    assert shop.condition("Ready") == ("False", "WritingTables")
    assert shop.condition("Reconciling")[0] == "True"
    shop.look()
    assert shop.condition("Ready") == ("False", "TablesStarting")
    shop.fares("b", "True")
    shop.look()
    assert shop.condition("Ready") == ("True", "TablesReady")
    assert "Reconciling" not in {c.type for c in shop.status.conditions}


def test_without_topics_a_set_waits_and_is_ready() -> None:
    shop = story([]).settles()
    assert shop.condition("Ready") == ("True", "NoTopics")
    assert shop.status.topics == 0


def test_tables_follow_the_template_and_what_others_put_on_them_stays() -> None:
    shop = story(["a", "b"]).settles()
    shop.tables["a"]["metadata"] |= {"finalizers": ["hudi.lakeops.dev/purge"], "resourceVersion": "7"}
    shop.tables["a"]["metadata"]["labels"]["team"] = "sea"
    shop.spec["template"]["spec"]["files"] = {"targetSize": "60Mi"}
    shop.spec["template"]["labels"] = {"of": "{table}"}
    writes = shop.look()
    assert [(type(each), each.topic) for each in writes] == [(ChangeTable, "a"), (ChangeTable, "b")]
    a = shop.tables["a"]
    assert a["spec"]["files"]["targetSize"] == "60Mi"
    assert a["metadata"]["labels"] == {"team": "sea", "of": "a", SET: NAME}
    assert (a["metadata"]["finalizers"], a["metadata"]["resourceVersion"]) == (["hudi.lakeops.dev/purge"], "7")
    assert not shop.look()


def test_what_somebody_changes_of_a_table_is_put_back() -> None:
    shop = story(["a"]).settles()
    shop.tables["a"]["spec"]["suspend"] = True
    assert [type(each) for each in shop.look()] == [ChangeTable]
    assert shop.tables["a"]["spec"]["suspend"] is False


def test_overrides_change_one_topic_name_it_or_leave_it_out() -> None:
    overrides = [
        {"topic": "a", "spec": {"recordKey": ["id", "day"], "ingest": [{"name": "feed", "mode": "Continuous"}]}},
        {"topic": "b", "name": "sales-{topic}"},
        {"topic": "c", "skip": True},
        {"topic": "misspelt", "skip": True},
    ]
    shop = story(["a", "b", "c"], overrides=overrides).settles()
    assert shop.tables.keys() == {"a", "sales-b"}
    assert shop.tables["a"]["spec"]["recordKey"] == ["id", "day"]
    (feed,) = shop.tables["a"]["spec"]["ingest"]
    assert (feed["mode"], feed["source"]["kafka"]["topics"]) == ("Continuous", ["a"])
    assert shop.tables["sales-b"]["spec"]["recordKey"] == ["id"]
    assert "overrides name topics that are none of them: misspelt" in shop.message("TopicsListed")


def test_a_table_keeps_its_name_when_the_template_gives_another() -> None:
    shop = story(["a"]).settles()
    shop.spec["template"]["name"] = "t-{topic}"
    shop.listed = ("a", "b")
    shop.settles()
    assert shop.tables.keys() == {"a", "t-b"}


@pytest.mark.parametrize(
    ("topics", "table", "words"),
    [
        (["a.b", "a_b"], None, "topics a.b and a_b both give the name a-b"),
        (
            ["x.t", "y.t"],
            {"location": "s3://lake/{table}"},
            "topic y.t gives the location s3://lake/t, which is that of topic x.t",
        ),
        (["orders", "x.orders.t"], {"location": "s3://lake/{schema}/{table}"}, "or lies above or below it"),
        (["a.orders.t", "orders"], {"location": "s3://lake/{schema}/{table}"}, "or lies above or below it"),
        (["---", "a"], None, "topic --- gives no name"),
    ],
)
def test_of_two_topics_that_collide_one_has_a_table_and_the_other_is_told(
    topics: list[str], table: dict[str, Any] | None, words: str
) -> None:
    shop = story(topics, table).settles()
    assert len(shop.tables) == 1
    assert shop.condition("NameCollision") == ("True", "NameCollision")
    assert shop.condition("Ready") == ("False", "NameCollision")
    assert words in shop.message("NameCollision")
    assert shop.reasons().count("NameCollision") == 2, "one event of the topic, one of the standstill"
    (failing,) = shop.status.failing
    assert failing.reason == "NameCollision"


@pytest.mark.parametrize(
    ("there", "comes", "words"),
    [
        (
            "rides",
            "rides_errors",
            "topic rides_errors gives the location s3://lake/rides_errors, which is that of the error table of topic rides,",
        ),
        (
            "rides_errors",
            "rides",
            "the error table of topic rides gives the location s3://lake/rides_errors, which is that of topic rides_errors,",
        ),
    ],
)
@pytest.mark.parametrize(
    "keeps",
    [{"onUndecodable": "Quarantine"}, {"expectations": [{"name": "n", "sql": "n > 0", "onFail": "Quarantine"}]}],
)
def test_a_table_does_not_lie_where_another_topic_keeps_what_it_refuses(
    there: str, comes: str, words: str, keeps: dict[str, Any]
) -> None:
    shop = story([there], {"ingest": [{"name": "feed", "source": SOURCE, **keeps}]}).settles()
    shop.listed = tuple(sorted((there, comes)))
    shop.settles()
    assert [each["spec"]["location"] for each in shop.tables.values()] == [f"s3://lake/{there}"]
    (failing,) = shop.status.failing
    assert (failing.topic, failing.reason) == (comes, "NameCollision")
    assert words in failing.message
    overrides = [{"topic": comes, "spec": {"location": "s3://lake/apart/{topic}"}}]
    shop.spec["overrides"] = overrides
    assert len(shop.settles().tables) == 2


def test_where_nothing_is_kept_apart_a_topic_may_be_called_as_an_error_table() -> None:
    assert len(story(["rides", "rides_errors", "rides_row_errors"]).settles().tables) == 3


def test_names_that_kafka_would_not_make_have_no_table() -> None:
    shop = story(["../../theirs", "a/b", "a\nb", "..", "", "x" * 250, "a..", "b"]).settles()
    assert shop.locations() == {"a": "s3://lake/a..", "b": "s3://lake/b"}
    by_table = story(["a.", "b."], {"location": "s3://lake/{table}"}).settles()
    assert by_table.locations() == {"a": "s3://lake/a.", "b": "s3://lake/b."}


def test_who_has_a_table_keeps_it_when_another_topic_would_take_its_name() -> None:
    shop = story(["b.b"]).settles()
    shop.listed = ("b-b", "b.b")
    shop.settles()
    assert shop.tables["b-b"]["metadata"]["annotations"][TOPIC] == "b.b"
    assert "topics b.b and b-b" in shop.message("NameCollision")


def test_a_table_that_is_somebody_elses_is_left_alone_until_it_bears_the_label() -> None:
    shop = story(["a"])
    shop.strangers = frozenset({"a"})
    assert not shop.look()
    assert "a HudiTable a is there that is not of this set: label it hudi.lakeops.dev/set=shop" in shop.message("Ready")
    labelled = {
        "apiVersion": "hudi.lakeops.dev/v1alpha1", "kind": "HudiTable", "spec": {**TABLE, "location": "s3://lake/a"},
        "metadata": {"name": "a", "namespace": "default", "uid": "u", "generation": 1, "labels": {SET: NAME}},
    }  # fmt: skip
    shop.strangers, shop.tables = frozenset(), {"a": labelled}
    assert [type(each) for each in shop.look()] == [ChangeTable]
    assert shop.tables["a"]["metadata"]["annotations"] == {TOPIC: "a"}
    assert shop.tables["a"]["metadata"]["uid"] == "u"


def test_a_topic_that_is_gone_leaves_its_table_as_it_is() -> None:
    shop = story(["a", "b"]).settles()
    shop.listed = ("a",)
    assert not shop.look()
    assert shop.tables.keys() == {"a", "b"}
    assert shop.condition("TopicsVanished") == ("True", "TopicsVanished")
    assert "1 topic gone or selected no more; their HudiTables are left as they are" in shop.message("TopicsVanished")
    assert shop.condition("Ready") == ("True", "TablesReady")
    assert [(each.topic, each.table) for each in shop.status.vanished] == [("b", "b")]
    shop.passes(days=9)
    assert not shop.look()
    assert shop.reasons().count("TopicsVanished") == 1
    shop.listed = ("a", "b")
    shop.look()
    assert shop.condition("TopicsVanished") == ("", "")


def test_with_prune_the_table_of_a_topic_goes_once_it_was_gone_for_long_enough() -> None:
    shop = story(["a", "b"], prune=True, pruneAfter="10m").settles()
    shop.listed = ("a",)
    assert not shop.look()
    first = rfc3339(shop.now)
    assert shop.wait == 60, "topics are listed each minute"
    shop.passes(minutes=9, seconds=30)
    assert not shop.look()
    assert shop.wait == 30, "it is looked at when the time has come"
    assert shop.status.vanished[0].since == first
    shop.passes(minutes=2)
    (write,) = shop.look()
    assert write == RemoveTable("b", "b", "uid-b")
    shop.settles()
    assert shop.tables.keys() == {"a"}


def test_nothing_is_pruned_while_no_topic_is_seen_or_brokers_are_away() -> None:
    shop = story(["a", "b"], prune=True, pruneAfter="1m").settles()
    shop.listed = ()
    shop.look()
    shop.passes(hours=1)
    assert not shop.look(), "an account that lost its rights sees no topic, and no error"
    assert shop.status.vanished_topics == 2
    shop.listed, shop.problem = None, AWAY
    assert not shop.look()
    assert shop.status.vanished_topics == 2
    shop.listed, shop.problem = ("a",), None
    assert [each.topic for each in shop.look()] == ["b"]


def test_where_topics_cannot_be_listed_tables_go_on_and_follow_the_template() -> None:
    shop = story(["a", "b"]).settles()
    shop.listed, shop.problem = None, AWAY
    assert not shop.look()
    assert shop.condition("Ready") == ("False", "Unavailable")
    assert shop.condition("Reconciling") == ("True", "Retrying")
    assert shop.condition("TopicsListed") == ("False", "Unavailable")
    assert (shop.status.topics, shop.status.tables) == (2, 2), "what was counted last"
    shop.spec["template"]["spec"]["files"] = {"targetSize": "60Mi"}
    assert len(shop.look()) == 2
    shop.problem = Problem("AccessDenied", "the brokers refuse")
    shop.look()
    assert shop.condition("Stalled") == ("True", "AccessDenied")


def test_of_more_topics_than_max_tables_no_further_table_is_made() -> None:
    shop = story(["b", "c"], maxTables=2).settles()
    shop.listed = tuple("abcdefgh")
    assert not shop.look(), "those that are there stay, and no other comes"
    assert shop.condition("Stalled") == ("True", "TooManyTopics")
    assert "8 topics are selected, and maxTables is 2: no table for a, d, e, f, g and 1 more" in shop.message("Ready")
    assert "TooManyTopics" in shop.reasons()


def test_a_set_that_is_suspended_or_wrong_writes_nothing() -> None:
    shop = story(["a"], suspend=True)
    assert not shop.look()
    assert shop.condition("Ready") == ("True", "Suspended")
    wrong = story(["a"], {"location": "s3://lake/{topics}"})
    assert not wrong.look()
    assert wrong.condition("Stalled") == ("True", "InvalidSpec")
    assert "no placeholder is named {topics}: did you mean {topic}?" in wrong.message("Ready")


def test_what_a_topic_makes_of_the_template_is_checked_before_it_is_written() -> None:
    shop = story(["a", "b"], overrides=[{"topic": "a", "spec": {"recordKey": []}}])
    shop.settles()
    assert shop.tables.keys() == {"b"}
    (failing,) = shop.status.failing
    assert (failing.topic, failing.reason) == ("a", "InvalidSpec")
    assert "spec.recordKey" in failing.message
    assert shop.condition("Ready") == ("False", "TopicsRefused")
    assert shop.reasons().count("InvalidSpec") == 1


def test_what_the_api_server_refuses_of_one_topic_keeps_no_other() -> None:
    shop = story(["a", "b"])
    shop.refused = {"a": Problem("InvalidRequest", "the API server does not take it")}
    shop.settles()
    assert shop.tables.keys() == {"b"}
    assert [(each.topic, each.reason) for each in shop.status.failing] == [("a", "InvalidRequest")]


def test_an_operator_that_may_make_no_tables_says_so() -> None:
    shop = story(["a.b", "a_b", "c"])
    shop.refused = {"c": Problem("AccessDenied", "the API server refuses: cannot create huditables")}
    shop.settles()
    assert shop.condition("Ready") == ("False", "AccessDenied")
    assert shop.status.failing_tables == 2


def test_the_first_tables_that_fail_are_named_and_all_are_counted() -> None:
    topics = [f"t{n:02}" for n in range(15)]
    shop = story(topics).settles()
    for name in topics[:14]:
        shop.fares(name, "False", "InvalidSpec", "spec.location: " + "long " * 400)
    shop.look()
    assert (shop.status.failing_tables, len(shop.status.failing), shop.status.ready_tables) == (14, 10, 1)
    assert shop.condition("Ready") == ("False", "TablesNotReady")
    assert "14 of 15 tables" in shop.message("Ready")
    assert "and 9 more" in shop.message("Ready")
    assert "NotReady" not in shop.reasons(), "a table tells of itself"


@pytest.mark.parametrize(
    ("ready", "others", "told"),
    [
        (("False", "NoTable"), {}, "TablesReady"),
        (("False", "Running"), {"Reconciling": "True"}, "TablesStarting"),
        (("False", "InvalidData"), {"Reconciling": "True", "Stalled": "True"}, "TablesNotReady"),
        (("Unknown", "Unavailable"), {"Reconciling": "True"}, "TablesNotReady"),
    ],
)
def test_a_table_without_rows_yet_is_no_failure_and_one_that_stands_still_is(
    ready: tuple[str, str], others: dict[str, str], told: str
) -> None:
    shop = story(["a"]).settles()
    shop.fares("a", *ready)
    shop.tables["a"]["status"]["conditions"] += [{"type": kind, "status": status} for kind, status in others.items()]
    shop.look()
    assert shop.condition("Ready")[1] == told
    assert shop.status.ready_tables == (told == "TablesReady")


def test_of_debezium_the_tables_of_the_database_are_followed_and_its_own_topics_are_not() -> None:
    topics = ["shop.message", "shop.public.orders", "shop.public.users", "shop.transaction"]
    shop = story(topics, EVENTS, selector={"database": {"topicPrefix": "shop"}}).settles()
    assert shop.locations() == {
        "shop-public-orders": "s3://lake/public/orders",
        "shop-public-users": "s3://lake/public/users",
    }
    assert shop.desired.spec is not None
    assert shop.desired.spec.selector.pattern == "shop\\.(?:.*)"


def test_with_orphan_tables_have_no_owner_and_are_given_one_when_that_changes() -> None:
    shop = story(["a"], deletionPolicy="Orphan").settles()
    assert shop.tables["a"]["metadata"]["ownerReferences"] == []
    shop.spec["deletionPolicy"] = "Delete"
    shop.settles()
    assert [each["kind"] for each in shop.tables["a"]["metadata"]["ownerReferences"]] == ["HudiTableSet"]
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"}
    shop.tables["a"]["metadata"]["ownerReferences"].append(theirs)
    shop.spec["deletionPolicy"] = "Orphan"
    shop.settles()
    assert shop.tables["a"]["metadata"]["ownerReferences"] == [theirs]


def test_a_table_that_is_being_deleted_is_not_changed() -> None:
    shop = story(["a"]).settles()
    shop.tables["a"]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    shop.tables["a"]["spec"]["suspend"] = True
    assert not shop.look()


def test_placeholders_of_other_ingests_are_filled_too() -> None:
    other = {"name": "old", "source": {"type": "Files", "path": "s3://b/{table}", "format": "json"}}
    shop = story(["a"], {"ingest": [{"name": "feed", "source": SOURCE}, other]}).settles()
    assert [each["source"].get("path") for each in shop.tables["a"]["spec"]["ingest"]] == [None, "s3://b/a"]
