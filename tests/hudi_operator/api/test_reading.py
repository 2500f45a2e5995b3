"""Documents that are read at once: as `parsing` reads them field by field, or not at all."""

from __future__ import annotations

import dataclasses
import typing
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_operator.api import parsing
from hudi_operator.api.reading import read
from hudi_operator.api.resources import SPECS
from hudi_operator.api.schema import bare_hints, fields_of, prop_of, to_document
from hudi_operator.api.service import TableServiceSpec
from hudi_operator.api.status import HudiTableStatus, TableServiceStatus
from hudi_operator.api.table import HudiTableSpec
from tests.support.manifests import ingest, spec
from tests.support.scale import scaled

CLASSES = (*SPECS.values(), HudiTableStatus, TableServiceStatus)
TEXTS = ("id", "s3://lake/flights", "5m", "1Gi", "0 3 * * *", "UTC", "a" * 64, "2026-01-01T00:00:00Z", "")
ODD = st.sampled_from((None, True, -1, 0, 1.5, 10**9, "", "x" * 5000, [], ["a", "a"], {}, {"name": "a"}))


def documents(cls: type) -> st.SearchStrategy[dict[str, Any]]:
    """Documents whose fields have the right kinds of values, most of them, within limits or not."""
    hints = bare_hints(cls)
    fields = {
        name: values(hints[field.name]) if prop_of(field).pattern is None else st.sampled_from(TEXTS)
        for name, field in fields_of(cls).items()
    }
    right = st.fixed_dictionaries({}, optional=fields)
    return st.one_of(
        right,
        right,
        st.builds(lambda a, b: a | b, right, st.dictionaries(st.sampled_from([*fields, "other"]), ODD, max_size=1)),
    )


def values(hint: Any) -> st.SearchStrategy[Any]:
    if dataclasses.is_dataclass(hint):
        return st.deferred(lambda: documents(typing.cast("type", hint)))
    if hint is Any:
        return ODD
    if typing.get_origin(hint) is tuple:
        return st.lists(values(typing.get_args(hint)[0]), max_size=3)
    if typing.get_origin(hint) is dict:
        return st.dictionaries(st.sampled_from(TEXTS), values(typing.get_args(hint)[1]), max_size=3)
    if issubclass(hint, StrEnum):
        return st.sampled_from([member.value for member in hint])
    kinds: dict[type, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(0, 200),
        float: st.one_of(st.floats(0, 10), st.integers(0, 10)),
        str: st.sampled_from(TEXTS),
    }
    return kinds[hint]


def slowly(cls: type, document: object) -> tuple[Any, tuple[parsing.FieldError, ...]]:
    """Field by field, with every error."""
    parser = parsing._Parser()
    found = parser.part(cls, document, "spec")
    return found, tuple(parser.errors)


@pytest.mark.parametrize("cls", CLASSES)
@settings(max_examples=scaled(40, quick=10))
@given(data=st.data())
def test_what_is_read_at_once_is_what_parsing_finds_and_no_error_is_passed_over(cls: type, data: st.DataObject) -> None:
    document = data.draw(documents(cls))
    found, errors = slowly(cls, document)
    # As text too: to Python, 1 is True.
    assert repr(read(cls, document)) == repr(None if errors else found)


@pytest.mark.parametrize(
    ("cls", "document"),
    [
        (HudiTableSpec, spec()),
        (HudiTableSpec, spec(ingest=[ingest(), ingest(name="other")], options={"hoodie.parquet.max.file.size": "1"})),
        (TableServiceSpec, {"tableRef": {"name": "flights"}, "type": "Cleaning", "schedule": "0 3 * * *"}),
    ],
)
def test_a_right_document_with_the_defaults_that_a_server_fills_in_is_read_at_once(
    cls: type, document: dict[str, Any]
) -> None:
    value: Any = read(cls, document)
    assert value is not None
    assert read(cls, to_document(value)) == value == slowly(cls, document)[0]


@pytest.mark.parametrize("changes", [{"type": "COW"}, {"recordKey": []}, {"suspend": 1}, {"recordkey": ["id"]}])
def test_a_document_with_an_error_is_left_to_parsing(changes: dict[str, Any]) -> None:
    assert read(HudiTableSpec, spec(**changes)) is None
    assert parsing.parse(HudiTableSpec, spec(**changes), "spec")[1]


def test_defaults_are_made_anew_for_each_part() -> None:
    found = [read(HudiTableSpec, spec()) for _ in range(2)]
    assert len({id(each.options) for each in found if each is not None}) == 2
