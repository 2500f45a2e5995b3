"""The alerts and the dashboard ask only for what the operator tells, and every alert says what to do."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from hudi_operator.metrics import catalog
from tests.support.helm import CHART

NAME = re.compile(r"\bhudi_[a-z_]+\b")
LABELS = re.compile(r"(hudi_[a-z_]+)\{([^}]*)\}")
KNOWN = {metric.name: set(metric.labels) for metric in catalog.EVERY}
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())
    return found


def expressions() -> list[str]:
    panels = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    variables = [each["definition"] for each in dashboard()["templating"]["list"] if "definition" in each]
    return [*(rule["expr"] for rule in rules()), *panels, *variables]


def test_every_metric_that_is_asked_for_exists() -> None:
    asked = {name for text in expressions() for name in NAME.findall(text)}
    assert len(asked) > 20
    assert {SUFFIX.sub("", name) if name not in KNOWN else name for name in asked} <= KNOWN.keys()


def test_every_label_that_is_asked_for_exists() -> None:
    for text in expressions():
        for name, chosen in LABELS.findall(text):
            assert set(re.findall(r"(\w+)\s*[=!]", chosen)) <= KNOWN[name], text


def test_conditions_that_are_asked_for_exist() -> None:
    asked = {name for text in expressions() for name in re.findall(r'condition="(\w+)"', text)}
    assert asked
    assert asked <= {*catalog.TABLE_CONDITIONS, *catalog.SERVICE_CONDITIONS}


def test_every_alert_has_a_severity_and_says_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
        labels = re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))
        metrics = [KNOWN[name] for name in NAME.findall(rule["expr"]) if name in KNOWN]
        assert set(labels) <= set().union(*metrics), rule["alert"]


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [(x, y) for panel in panels for x, y in _cells(panel["gridPos"])]
    assert len(places) == len(set(places))


def _cells(place: dict[str, int]) -> list[tuple[int, int]]:
    columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    assert max(columns) < 24
    return [(x, y) for x in columns for y in rows]
