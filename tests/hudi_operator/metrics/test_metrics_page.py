"""`docs/reference/metrics.md` says of each metric what the catalog says, and what is exported is
what stands in both."""

from __future__ import annotations

import re
from pathlib import Path

from hudi_operator.metrics import catalog

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "metrics.md").read_text()
LINE = re.compile(r"^\| `((?:hudi)_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def test_the_page_and_the_catalog_say_the_same_in_the_same_order() -> None:
    told = [(name, kind, labels.replace("`", ""), says) for name, kind, labels, says in LINE.findall(PAGE)]
    assert told == [(each.name, each.kind, ", ".join(each.labels), each.says) for each in catalog.EVERY]


def test_every_condition_is_on_the_page() -> None:
    known = (*catalog.TABLE_CONDITIONS, *catalog.SET_CONDITIONS, *catalog.SERVICE_CONDITIONS)
    assert not {name for name in known if f"`{name}`" not in PAGE}


def test_units_and_kinds_are_in_the_names_as_prometheus_has_them() -> None:
    assert all(each.name.endswith("_total") == (each.kind == "counter") for each in catalog.EVERY)
    assert len({each.name for each in catalog.EVERY}) == len(catalog.EVERY)
