"""Templates: placeholders, overrides, and names that Kubernetes takes."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hudi_operator.api.fields.patterns import NAME
from hudi_operator.api.resources import desired_set
from hudi_operator.api.templates import NAME_LENGTH_MAX, filled, merged, object_name, unknown_placeholders, values_of
from tests.support.manifests import manifest, stored
from tests.support.set_manifests import TABLE, set_spec

VALUES = {**values_of("shop.public.orders", "lake", "shop"), "name": "orders"}


def errors(**changes: object) -> list[str]:
    table = changes.pop("table", None)
    document = stored(manifest("shop", "HudiTableSet", **set_spec(table, **changes)))  # type: ignore[arg-type]
    return [str(error) for error in desired_set(document).errors]


def test_placeholders_are_filled_in_every_text_and_other_braces_stay() -> None:
    template = {
        "a": "s3://{schema}/{table}",
        "b": [{"c": "{topic}-{name}"}, 3, None],
        "d": "rlike '[0-9]{4}' and '{\"x\": {}}'",
        "e": "{{topic}} of {set} in {namespace}",
        "{topic}": True,
    }
    assert filled(template, VALUES) == {
        "a": "s3://public/orders",
        "b": [{"c": "shop.public.orders-orders"}, 3, None],
        "d": "rlike '[0-9]{4}' and '{\"x\": {}}'",
        "e": "{topic} of shop in lake",
        "{topic}": True,
    }


def test_a_topic_without_dots_is_its_own_table_and_has_no_schema() -> None:
    assert (values_of("orders", "lake", "s")["table"], values_of("orders", "lake", "s")["schema"]) == ("orders", "")


def test_an_unknown_placeholder_is_told_with_its_place_and_the_nearest() -> None:
    (found,) = unknown_placeholders({"a": ["{topic}", "{topics}"]}, "spec")
    assert found.path == "spec.a[1]"
    assert "did you mean {topic}?" in found.message
    (other,) = unknown_placeholders("{customer}", "spec")
    assert "there are {topic}, {table}, {schema}, {name}, {namespace}, {set}" in other.message
    assert "write {{customer}}" in other.message
    assert not list(unknown_placeholders("{{customer}} [0-9]{2}", "spec"))


def test_a_set_whose_template_has_an_unknown_placeholder_or_option_is_wrong() -> None:
    assert not errors()
    (said,) = errors(table={"location": "s3://lake/{topic}/{tabel}"})
    assert said.startswith("spec.template.spec.location: no placeholder is named {tabel}: did you mean {table}?")
    (said,) = errors(overrides=[{"topic": "a", "spec": {"location": "s3://lake/{topik}"}}])
    assert said.startswith("spec.overrides[0].spec.location")
    (said,) = errors(table={"options": {"hoodie.nothing": "1"}})
    assert said.startswith("spec.template.spec.options[hoodie.nothing]")
    (said,) = errors(template={"spec": TABLE, "name": "t-{name}"})
    assert said.startswith("spec.template.name: {name} is what it makes")


def test_an_override_replaces_fields_takes_away_and_merges_items_by_their_names() -> None:
    base = {"a": {"x": 1, "y": 2}, "l": [1, 2], "n": [{"name": "feed", "mode": "Once", "k": {"a": 1}}, {"name": "b"}]}
    change = {
        "a": {"y": None, "z": 3},
        "l": [9],
        "n": [{"name": "feed", "mode": "Continuous", "k": {"b": 2}}, {"name": "c"}],
    }
    assert merged(base, change) == {
        "a": {"x": 1, "z": 3},
        "l": [9],
        "n": [{"name": "feed", "mode": "Continuous", "k": {"a": 1, "b": 2}}, {"name": "b"}, {"name": "c"}],
    }
    assert base["n"][0]["mode"] == "Once", "the template itself stays"  # type: ignore[index]
    assert merged({"n": [{"name": "a"}]}, {"n": []}) == {"n": []}


@given(st.text(max_size=300))
def test_a_name_is_one_that_kubernetes_takes_or_none(text: str) -> None:
    name = object_name(text)
    assert len(name) <= NAME_LENGTH_MAX
    assert not name or re.fullmatch(NAME.strip("^$"), name)


def test_names_that_are_too_long_stay_apart() -> None:
    long = "shop.public." + "orders_of_the_year_" * 5
    one, other = object_name(f"{long}1"), object_name(f"{long}2")
    assert one != other
    assert one.startswith("shop-public-orders-of-the-year-")
    assert object_name("Shop.Public.Orders_EU") == "shop-public-orders-eu"
    assert object_name("...") == ""
