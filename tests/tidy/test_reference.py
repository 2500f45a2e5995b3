"""The reference of Python calls: every public name has its place there, and says itself what it
does."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import hudi_spark
import hudi_table
from hudi_table import errors
from hudi_table.services.base import ScheduledService, Service
from tests.tidy.sources import ROOT

API = ROOT / "docs" / "reference" / "api"
PAGES = {hudi_table: "hudi_table.md", hudi_spark: "hudi_spark.md"}
SAID = ("by its noun:", "on the timeline:")
"""What stands on the page before the list of the services, and before that of those that are
scheduled."""


def shown(page: str) -> list[Any]:
    """What a page takes from the docstrings."""
    return [pkgutil.resolve_name(":".join(name.rsplit(".", 1))) for name in described(page)]


def described(page: str) -> list[str]:
    found: list[str] = re.findall(r"^::: (\S+)$", (API / page).read_text("utf-8"), re.MULTILINE)
    return found


def public(module: ModuleType) -> dict[str, Any]:
    """The functions and classes that `import` gives."""
    named = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {name: each for name, each in named.items() if inspect.isclass(each) or inspect.isfunction(each)}


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties, inherited ones of ours too."""
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        if not name.startswith("_") and inspect.isfunction(function):
            yield f"{cls.__name__}.{name}", function


def silent(named: dict[str, Any]) -> list[str]:
    """The names without a docstring of their own or of what they implement."""
    parts = dict(named)
    for each in named.values():
        if inspect.isclass(each):
            parts |= dict(members(each))
    return sorted(name for name, each in parts.items() if not inspect.getdoc(each))


@pytest.mark.parametrize("module", PAGES, ids=lambda module: module.__name__)
def test_the_reference_shows_every_name_that_an_import_gives(module: ModuleType) -> None:
    there = {id(each) for each in shown(PAGES[module])}
    assert not [
        name
        for name, each in public(module).items()
        if id(each) not in there and not (inspect.isclass(each) and issubclass(each, errors.HudiError))
    ]
    assert described("errors.md") == ["hudi_table.errors"]


def test_every_public_name_has_a_docstring() -> None:
    named = {name: each for module in (*PAGES, errors) for name, each in public(module).items()}
    named |= {each.__name__: each for page in PAGES.values() for each in shown(page)}
    assert len(named) > 30
    assert not silent(named)


def test_a_silent_method_is_seen() -> None:
    class Loud:
        """It says something."""

        def quiet(self) -> None: ...

        @property
        def still(self) -> int:
            return 1

    assert silent({"Loud": Loud}) == ["Loud.quiet", "Loud.still"]


def test_the_services_that_the_page_names_are_those_of_a_table_with_the_verbs_that_it_shows(tmp_path: Path) -> None:
    services = hudi_table.create_table(tmp_path / "t", {"id": pa.string()}, record_key="id").services
    text = (API / "hudi_table.md").read_text("utf-8").partition("## Services")[2]
    every, scheduled = (re.findall(r"`(\w+)`", re.findall(rf"{said}(.*?)\.", text, re.DOTALL)[0]) for said in SAID)
    assert sorted(vars(services)) == sorted(every)
    assert sorted(scheduled) == sorted(
        noun for noun, each in vars(services).items() if isinstance(each, ScheduledService)
    )
    verbs = {name for name in vars(Service) if not name.startswith("_")}
    assert not [noun for noun, each in vars(services).items() if not verbs <= set(dir(each))]
