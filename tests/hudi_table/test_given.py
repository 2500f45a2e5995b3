"""What public calls are given: every argument of another type is refused by name before anything is
done."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_table
from hudi_table import HudiTable, create_table
from hudi_table.bootstrapping import bootstrap_table
from hudi_table.importing import import_table
from hudi_table.model.service.services import ServicePlan, ServiceType
from hudi_table.services.registry import Services

FREE = {"schema", "data", "filter", "steps", "source"}
"""What says itself what it cannot take: rows, schemas, conditions, places of several kinds."""


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return create_table(tmp_path / "t", {"id": pa.string(), "v": pa.int64()}, record_key="id")


def _calls(table: HudiTable) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public call, by its title."""
    for name in hudi_table.__all__:
        if name.endswith(("_table", "_hudi")):
            yield name, getattr(hudi_table, name)
    yield from (("import_table", import_table), ("bootstrap_table", bootstrap_table))
    for name, _ in inspect.getmembers(HudiTable, inspect.isfunction):
        if not name.startswith("_"):
            yield f"table.{name}", getattr(table, name)
    for name, service in vars(Services(table.context)).items():
        yield f"table.services.{name}", service
        for verb in ("execute", "run"):
            yield f"table.services.{name}.{verb}", getattr(_asked(service), verb)


def _asked(service: Any) -> Any:
    """The service as one of its nouns makes it: some are made by a call that needs more."""
    more = {"savepoint": "1", "instant": "1", "buckets": 4, "to": 8, "index": "Bloom", "options": {}}
    needed = [each.name for each in inspect.signature(service).parameters.values() if each.default is each.empty]
    return service(**{name: more[name] for name in needed}) if needed else service


def _answer(call: Callable[..., Any], name: str) -> str:
    """What a call says of an argument that can be none of its kinds, beside right ones where it
    needs them."""
    needed = {
        "uri": "x", "source": "x", "record_key": "id", "table_or_uri": "x", "to": 8, "schema": None, "data": None, "instant": "1", "savepoint": "1", "findings": (),
        "options": {}, "buckets": 4, "time": "1", "index": "Bloom", "name": "by_v", "column": "v", "plan": ServicePlan(ServiceType.CLEANING, "due"),
    }  # fmt: skip
    parameters = inspect.signature(call).parameters.values()
    given = {each.name: needed[each.name] for each in parameters if each.default is each.empty and each.name in needed}
    try:
        call(**{**given, name: object()})
    except hudi_table.InvalidOptionError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not ours
        return f"{type(error).__name__}: {error}"
    return "taken"


def test_every_argument_of_every_public_call_refuses_by_its_name_what_it_cannot_be(table: HudiTable) -> None:
    answers = {
        f"{title}({each.name})": (each.name, _answer(call, each.name))
        for title, call in _calls(table)
        for each in inspect.signature(call).parameters.values()
        if each.kind is not each.VAR_KEYWORD and (each.name not in FREE or isinstance(each.default, bool))
    }
    assert len(answers) > 100
    faults = [f"{title}: {said}" for title, (name, said) in answers.items() if f"{name} is <object" not in said]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("max_memory", "1g"), ("max_memory", True), ("options", ["a"]), ("batch", 5), ("extra_metadata", ["a"]), ("partitions", "a"),
     ("progress", "yes"), ("operation", 5), ("engine", "spark"), ("options", {"hoodie.allow.empty.commit": True})],
)  # fmt: skip
def test_a_write_names_the_argument_that_it_cannot_take_and_writes_nothing(
    table: HudiTable, argument: str, value: Any
) -> None:
    with pytest.raises(hudi_table.InvalidOptionError, match=argument.rstrip("s")):
        table.write(pa.table({"id": ["a"], "v": [1]}), **{argument: value})
    assert table.timeline().num_rows == 0


def test_a_text_is_neither_true_nor_a_number_of_rows(table: HudiTable) -> None:
    with pytest.raises(hudi_table.InvalidOptionError, match="force is 'no': give True or False"):
        table.clean(force="no")  # type: ignore[arg-type]
    with pytest.raises(hudi_table.InvalidOptionError, match="limit is '3': give a whole number"):
        table.scan(limit="3")  # type: ignore[arg-type]
