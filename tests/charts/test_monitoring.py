"""The alerts and the dashboard ask only for what the operator tells, and every alert says what to
do."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from hudi_operator.metrics import catalog
from hudi_operator.metrics.health import Limits
from hudi_operator.plan.schedule.runs import RetryPolicy
from tests.support.api_server import ROOT
from tests.support.helm import CHART, Helm

NAME = re.compile(r"\bhudi_[a-z_]+\b")
LABELS = re.compile(r"(hudi_[a-z_]+)\{([^}]*)\}")
RUNBOOKS = ROOT / "docs" / "runbooks"
TARGET = {"namespace", "app_kubernetes_io_instance"}
"""Labels that the chart's monitors give the samples of a pod."""
KNOWN = {metric.name: set(metric.labels) for metric in catalog.EVERY}
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """No server is needed here."""
    return Helm(tmp_path_factory.mktemp("helm"))


def rendered(helm: Helm, **how: Any) -> list[dict[str, Any]]:
    """The alerts as the chart makes them."""
    objects = helm.template({"metrics": {"prometheusRule": {"enabled": True, **how}}})
    (found,) = [each for each in objects if each["kind"] == "PrometheusRule"]
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


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


def test_every_label_that_is_asked_for_exists(helm: Helm) -> None:
    for text in expressions():
        for name, chosen in LABELS.findall(text):
            assert set(re.findall(r"(\w+)\s*[=!]", chosen)) <= KNOWN[name], text
    for rule in rendered(helm):
        for name, chosen in LABELS.findall(rule["expr"]):
            given = TARGET if name.startswith("hudi_operator_") else set()
            assert set(re.findall(r"(\w+)\s*[=!]", chosen)) <= KNOWN[name] | given, rule["alert"]


def test_conditions_that_are_asked_for_exist() -> None:
    asked = {name for text in expressions() for name in re.findall(r'condition="(\w+)"', text)}
    assert asked
    assert asked <= {*catalog.TABLE_CONDITIONS, *catalog.SET_CONDITIONS, *catalog.SERVICE_CONDITIONS}


def test_every_alert_has_a_severity_and_says_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
        labels = re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))
        metrics = [KNOWN[name] for name in NAME.findall(rule["expr"]) if name in KNOWN]
        assert set(labels) <= set().union(*metrics), rule["alert"]


def test_every_alert_leads_to_its_runbook_and_every_runbook_belongs_to_an_alert(helm: Helm) -> None:
    names = {rule["alert"] for rule in rules()}
    assert {path.stem for path in RUNBOOKS.glob("Hudi*.md")} == names
    for rule in rendered(helm):
        page = ROOT / rule["annotations"]["runbook_url"]
        assert page.read_text().startswith(f"# {rule['alert']}\n")
    elsewhere = rendered(helm, runbookUrl="https://wiki.example/{alert}/")
    assert elsewhere[0]["annotations"]["runbook_url"] == f"https://wiki.example/{elsewhere[0]['alert']}/"


def test_every_threshold_is_a_value_and_every_value_a_threshold(helm: Helm) -> None:
    asked = set(re.findall(r"\$\{(\w+)\}", json.dumps(rules())))
    values = yaml.safe_load((CHART / "values.yaml").read_text())["metrics"]["prometheusRule"]["thresholds"]
    assert asked == {*values, "release", "name"}
    assert "${" not in json.dumps(rendered(helm))
    changed = {
        rule["alert"]: rule["expr"] for rule in rendered(helm, thresholds={"logBytes": 5e12, "serviceFailures": 7})
    }
    assert re.search(r"hudi_table_log_bytes > 5e\+12 ", changed["HudiTableLogsGrow"])
    assert changed["HudiServiceFails"].endswith(">= 7")
    assert changed["HudiTableTimelineLong"].endswith("> 800")


def test_one_resource_that_fails_again_and_again_is_told(helm: Helm) -> None:
    """Its repeats come ever later."""
    (rule,) = [each for each in rendered(helm) if each["alert"] == "HudiOperatorErrors"]
    assert float(rule["expr"].rpartition("> ")[2]) < 1 / RetryPolicy().backoff_max_seconds


def test_a_pod_that_is_replaced_since_it_is_deaf_is_told(helm: Helm) -> None:
    """With the process its gauge goes: what it said last has to be remembered."""
    (rule,) = [each for each in rendered(helm) if each["alert"] == "HudiOperatorDeaf"]
    (deployment,) = [each for each in helm.template() if each["kind"] == "Deployment"]
    probe = deployment["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
    lasts = Limits().behind + probe["failureThreshold"] * probe["periodSeconds"]
    window = re.search(r"max_over_time\(\S+\[(\d+)m\]\)", rule["expr"])
    holds = lasts - float(rule["expr"].rpartition("> ")[2]) + (60 * int(window[1]) if window is not None else 0)
    assert holds > 60 * int(rule.get("for", "0m").removesuffix("m")) + 60, "and a scrape"


def test_a_release_that_is_down_is_not_hidden_by_another(helm: Helm) -> None:
    """By the labels that both monitors add to the samples of its pods."""
    down = rendered(helm)[0]
    assert down["alert"] == "HudiOperatorDown"
    for chosen in re.findall(r"\{([^}]*)\}", down["expr"]):
        assert chosen == 'namespace="hudi-operator",app_kubernetes_io_instance="hudi-operator"'
    for kind in ("podMonitor", "serviceMonitor"):
        objects = helm.template({"metrics": {kind: {"enabled": True}}})
        (monitor,) = [each for each in objects if each["kind"].lower() == kind.lower()]
        assert monitor["spec"]["podTargetLabels"] == ["app.kubernetes.io/instance"]


def test_every_panel_says_what_it_shows_and_the_worst_tables_lead_on() -> None:
    panels = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    assert not [panel["title"] for panel in panels if len(panel.get("description", "")) < 20]
    for panel in panels:
        if panel["type"] == "stat":
            assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    (worst,) = [panel for panel in panels if panel["type"] == "table"]
    columns = worst["transformations"][-1]["options"]["renameByName"]
    shown = {each["matcher"]["options"] for each in worst["fieldConfig"]["overrides"]}
    assert shown <= set(columns.values())
    assert {f"Value #{target['refId']}" for target in worst["targets"]} <= set(columns)
    assert f"/d/{dashboard()['uid']}?" in json.dumps(worst)


def test_lines_of_the_dashboard_are_the_thresholds_of_the_alerts() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["metrics"]["prometheusRule"]["thresholds"]
    lines = {
        panel["title"]: panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"]
        for panel in dashboard()["panels"]
        if "is the default of the alert" in panel.get("description", "")
    }
    assert lines == {
        "Age of what has waited longest": values["ingestLagSeconds"],
        "Logs that wait for compaction": values["logBytes"],
        "Files of the timeline": values["timelineFiles"],
        "Runs of services that failed in a row": values["serviceFailures"],
    }


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [(x, y) for panel in panels for x, y in _cells(panel["gridPos"])]
    assert len(places) == len(set(places))


def _cells(place: dict[str, int]) -> list[tuple[int, int]]:
    columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    assert max(columns) < 24
    return [(x, y) for x in columns for y in rows]
