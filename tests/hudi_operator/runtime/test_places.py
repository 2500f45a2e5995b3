"""Which tables lie where others do."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.resources import Key, key_of
from hudi_operator.runtime.places import Places
from tests.support.manifests import manifest, spec, stored


def table(name: str, namespace: str = "lake", **changes: Any) -> dict[str, Any]:
    found = stored(manifest(name, **spec(**changes)))
    return {**found, "metadata": {**found["metadata"], "namespace": namespace}}


def names(places: Places, document: dict[str, Any]) -> list[str]:
    return [f"{key.namespace}/{key.name}" for key in places.sharing(key_of(document))]


def known(*documents: dict[str, Any]) -> Places:
    places = Places()
    for each in documents:
        places.add(key_of(each), each)
    return places


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({}, {}, True),
        ({}, {"location": "s3a://lake/flights/"}, True),
        ({}, {"location": "s3://lake/flights/inner"}, True),
        ({}, {"location": "s3://lake/flights-2"}, False),
        ({}, {"storage": {"endpoint": "http://other:9000"}}, False),
        ({"storage": {"endpoint": "http://s3:1/"}}, {"storage": {"endpoint": "http://s3:1"}}, True),
        ({"storage": {"endpoint": "http://s3:80"}}, {"storage": {"endpoint": "http://S3"}}, True),
        ({"storage": {"endpoint": "https://s3:443/a"}}, {"storage": {"endpoint": "https://s3/a/"}}, True),
        ({"storage": {"endpoint": "https://s3:80"}}, {"storage": {"endpoint": "https://s3"}}, False),
        ({"storage": {"endpoint": "http://s3:1/a"}}, {"storage": {"endpoint": "http://s3:1/A"}}, False),
        ({"location": "file:///data/a"}, {"location": "file:///data/a"}, False),
    ],
)
def test_places_are_compared_across_namespaces(one: dict[str, Any], other: dict[str, Any], *, shared: bool) -> None:
    here, there = table("a", **one), table("b", "other", **other)
    places = known(here, there)
    assert names(places, here) == (["other/b"] if shared else [])
    assert names(places, there) == (["lake/a"] if shared else [])


def test_what_is_gone_shares_no_more_and_leaves_nothing() -> None:
    here, there = table("a"), table("b", location="s3://lake/flights/x")
    places = known(here, there)
    places.remove(key_of(there))
    assert names(places, here) == []
    places.remove(key_of(here))
    assert places == Places()


@pytest.mark.parametrize(
    "broken", [None, "text", {"location": 7}, {"location": None}, {"location": "s3://lake/f", "storage": "x"}]
)
def test_a_document_that_is_no_table_harms_nobody(broken: object) -> None:
    document = {**table("c"), "spec": broken}
    assert names(known(table("a"), document), document) == []
    assert Places().sharing(Key("HudiTable", "lake", "nobody")) == []


def following(name: str, *locations: str, namespace: str = "lake", **changes: Any) -> dict[str, Any]:
    sources = [{"type": "Hudi", "hudi": {"location": each}} for each in locations]
    ingests = [{"name": f"i{n}", "source": source} for n, source in enumerate(sources)]
    return table(name, namespace, location=f"s3://lake/{name}", ingest=ingests, **changes)


def test_who_follows_a_table_is_known_within_its_namespace() -> None:
    above, below = table("a"), following("b", "s3a://lake/flights/", "s3://lake/others")
    elsewhere = following("c", "s3://lake/flights", namespace="other")
    other_store = following("d", "s3://lake/flights", storage={"endpoint": "http://other:9000"})
    places = known(above, below, elsewhere, other_store)
    assert [key.name for key in places.followers(key_of(above))] == ["b"]
    assert [key.name for key in places.upstreams(key_of(below))] == ["a"]
    assert places.upstreams(key_of(above)) == places.upstreams(key_of(elsewhere)) == []
    assert places.upstreams(key_of(other_store)) == []
    places.remove(key_of(below))
    assert places.followers(key_of(above)) == []
    for document in (above, elsewhere, other_store):
        places.remove(key_of(document))
    assert places == Places()


@pytest.mark.parametrize("ingests", [None, "x", ["x"], [{"source": "x"}], [{"source": {"hudi": {"location": 7}}}]])
def test_ingests_that_are_none_follow_nobody(ingests: object) -> None:
    above, below = table("a"), {**table("b"), "spec": {"location": "s3://lake/b", "ingest": ingests}}
    assert known(above, below).followers(key_of(above)) == []
