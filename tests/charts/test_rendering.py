"""What the charts give: well formed for every set of values, checked by their schema, with no more
rights or freedom than is needed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from hudi_operator.api import crd
from hudi_operator.api.names import PLURALS
from hudi_operator.manifests.pod_parts import ATTEMPT
from hudi_operator.manifests.policies import read_policies
from hudi_table.version import __version__
from scripts import render_manifests
from tests.support.api_server import ROOT
from tests.support.audit import granted
from tests.support.chart_values import CLOSED, DIGEST, JOBS, MATRIX
from tests.support.helm import CHART, CRDS, KUBERNETES, NAMESPACE, RELEASE, Helm

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"watchNamespace": ["lake"]}, "watchNamespace"),
    ({"watchNamespaces": "lake"}, "watchNamespaces"),
    ({"watchNamespaces": ["Lake"]}, "watchNamespaces"),
    ({"watchNamespaces": ["lake", "lake"]}, "watchNamespaces"),
    ({"image": "hudi-operator:1.2"}, "image"),
    ({"image": {"operator": {"digest": "latest"}}}, "image.operator.digest"),
    ({"image": {"spark": {"name": "hudi-spark"}}}, "image.spark"),
    ({"image": {"pullPolicy": "Sometimes"}}, "image.pullPolicy"),
    ({"replicas": 2}, "replicas"),
    ({"replicaCount": "2"}, "replicaCount"),
    ({"workers": 0}, "workers"),
    ({"metrics": {"port": 80}}, "metrics.port"),
    ({"metrics": {"podMonitor": {"interval": "often"}}}, "metrics.podMonitor.interval"),
    ({"metrics": {"prometheusRule": {"thresholds": {"logs": 1}}}}, "metrics.prometheusRule.thresholds"),
    (
        {"metrics": {"prometheusRule": {"thresholds": {"logBytes": "1 GB"}}}},
        "metrics.prometheusRule.thresholds.logBytes",
    ),
    ({"metrics": {"prometheusRule": {"runbookUrl": "https://wiki.example"}}}, "metrics.prometheusRule.runbookUrl"),
    (
        {"metrics": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}},
        "metrics.podMonitor and metrics.serviceMonitor",
    ),
    ({"networkPolicy": {"enable": False}}, "networkPolicy"),
    ({"launchers": {"sparkOperator": True}}, "launchers.sparkOperator"),
    ({"jobs": {"driverServiceAccount": {"name": ""}}}, "jobs.driverServiceAccount"),
    ({"terminationGracePeriodSeconds": 5}, "terminationGracePeriodSeconds"),
    ({"jobs": {"pods": {"hostNetwork": True}}}, "jobs.pods"),
    ({"jobs": {"pods": {"memory": 3}}}, "jobs.pods"),
    ({"jobs": {"podsByNamespace": {"lake": {"maxAttempts": 0}}}}, "jobs.podsByNamespace"),
    ({"jobs": {"maxAttempts": "ten"}}, "jobs.maxAttempts"),
]
FORBIDDEN_VERBS = {"*", "escalate", "bind", "impersonate"}
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """No server is needed here."""
    return Helm(tmp_path_factory.mktemp("helm"))


def only(objects: list[dict[str, Any]], kind: str, name: str | None = None) -> dict[str, Any]:
    (found,) = [each for each in objects if each["kind"] == kind and name in (None, each["metadata"]["name"])]
    return found


def roles(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] in ("Role", "ClusterRole")]


def pods(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The specs of all pods."""
    found = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"]
    return found + [each["spec"] for each in objects if each["kind"] == "Pod"]


@pytest.mark.parametrize("case", MATRIX)
def test_the_chart_passes_the_strict_lint(helm: Helm, case: str) -> None:
    helm.done(
        "lint", "--strict", "--kube-version", KUBERNETES, CHART, "--values", "-", given=yaml.safe_dump(MATRIX[case])
    )


def test_the_chart_of_the_definitions_passes_the_strict_lint(helm: Helm) -> None:
    helm.done("lint", "--strict", "--kube-version", KUBERNETES, CRDS)


@pytest.mark.parametrize(("values", "name"), WRONG, ids=lambda each: each if isinstance(each, str) else "")
def test_a_wrong_value_is_refused_by_its_name(helm: Helm, values: dict[str, Any], name: str) -> None:
    ended = helm(
        "template", RELEASE, CHART, "--kube-version", KUBERNETES, "--values", "-", given=yaml.safe_dump(values)
    )
    assert ended.returncode != 0, "it was taken"
    assert name in ended.stderr.replace("/", "."), ended.stderr


def test_every_value_is_in_the_schema_and_has_a_word(helm: Helm) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) | {"global"} == set(schema["properties"])
    assert schema["additionalProperties"] is False


def test_every_value_that_the_page_names_exists() -> None:
    page = (
        (ROOT / "docs" / "how-to" / "install.md")
        .read_text()
        .partition("### Values that matter")[2]
        .partition("\n## ")[0]
    )
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    assert len(names) > 10
    for name in names:
        found = values
        for part in name.split("."):
            assert part in found, name
            found = found[part]


def test_the_charts_have_the_version_of_the_project() -> None:
    for chart in (CHART, CRDS):
        said = yaml.safe_load((chart / "Chart.yaml").read_text())
        assert said["appVersion"] == __version__
        assert said["version"].replace("-dev.", ".dev") == __version__


def test_what_is_derived_is_as_it_was_written() -> None:
    """`python -m scripts.render_manifests` writes it anew."""
    wanted = render_manifests.definitions() | render_manifests.config()
    for name, text in wanted.items():
        assert (ROOT / name).read_text() == text, f"{name}: type python -m scripts.render_manifests"
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "config").rglob("*") if path.is_file()}
    assert there == {name for name in wanted if name.startswith("config/")}


def test_the_definitions_of_the_chart_are_those_of_crds_and_stay(helm: Helm) -> None:
    found = [each for each in helm.template(chart=CRDS) if each["kind"] == "CustomResourceDefinition"]
    for each in found:
        assert each["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert {each["spec"]["names"]["kind"]: each for each in found} == {
        kind: yaml.safe_load(yaml.safe_dump(crd.definition(kind))) for kind in PLURALS
    }


def test_the_roles_of_people_add_to_those_of_kubernetes(helm: Helm) -> None:
    view, edit = (only(helm.template(chart=CRDS), "ClusterRole", f"hudi-{name}") for name in ("view", "edit"))
    assert {right.verb for right in granted(view["rules"])} == {"get", "list", "watch"}
    assert {right.verb for right in granted(edit["rules"])} == WRITES
    assert {right.resource for right in granted(edit["rules"])} == set(PLURALS.values())
    assert [each["kind"] for each in helm.template({"aggregateRoles": False}, CRDS)] == [
        "CustomResourceDefinition"
    ] * len(PLURALS)


@pytest.mark.parametrize(
    "case", [name for name, values in MATRIX.items() if values.get("watchNamespaces") and not values.get("rbac")]
)
def test_with_chosen_namespaces_nothing_belongs_to_the_whole_cluster(helm: Helm, case: str) -> None:
    objects = helm.template(MATRIX[case])
    assert not [each["kind"] for each in objects if each["kind"].startswith("Cluster")]
    assert {each["metadata"]["namespace"] for each in objects} == {NAMESPACE, *MATRIX[case]["watchNamespaces"]}


def test_what_outlives_a_chosen_namespace_is_the_right_to_let_go_of_its_tables_alone(helm: Helm) -> None:
    role = only(helm.template(MATRIX["purge"]), "ClusterRole")
    assert {(right.resource, right.verb) for right in granted(role["rules"])} == {
        ("huditables", verb) for verb in ("get", "list", "patch")
    }
    assert not [
        each for each in helm.template({"rbac": {"purge": True}}) if each["metadata"]["name"].endswith("-purge")
    ]


@pytest.mark.parametrize("case", MATRIX)
def test_no_right_is_wider_than_its_use(helm: Helm, case: str) -> None:
    for role in roles(helm.template(MATRIX[case])):
        for right in granted(role["rules"]):
            assert "*" not in (right.group, right.resource), right
            assert right.verb not in FORBIDDEN_VERBS, right
            assert right.resource not in ("pods/exec", "pods/attach", "serviceaccounts/token"), right
            assert "webhookconfigurations" not in right.resource, right
            assert right.group != "rbac.authorization.k8s.io", right
            if right.resource == "secrets":
                assert right.verb == "get", right
            if "hudi-driver" not in role["metadata"]["name"] and right.resource in ("pods", "configmaps", "secrets"):
                assert right.verb not in WRITES, right


@pytest.mark.parametrize("case", MATRIX)
def test_every_container_is_restricted_and_more(helm: Helm, case: str) -> None:
    found = pods(helm.template(MATRIX[case]))
    assert len(found) == 2, "the operator's and the test's"
    for pod in found:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["securityContext"]["runAsUser"] > 0
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
            }  # fmt: skip
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]
        assert not any("hostPath" in volume for volume in pod.get("volumes", ()))


def test_jobs_have_an_account_without_rights_and_token(helm: Helm) -> None:
    objects = helm.template({"watchNamespaces": ["lake-a", "lake-b"]})
    accounts = [each for each in objects if each["kind"] == "ServiceAccount" and each["metadata"]["name"] == "hudi-job"]
    assert {each["metadata"]["namespace"] for each in accounts} == {"lake-a", "lake-b"}
    assert not any(each["automountServiceAccountToken"] for each in accounts)
    bound = {subject["name"] for each in objects if each["kind"] == "RoleBinding" for subject in each["subjects"]}
    assert "hudi-job" not in bound


@pytest.mark.parametrize(
    ("values", "account"),
    [
        ({}, "default"),
        ({"watchNamespaces": ["lake-a"]}, "hudi-job"),
        ({"jobs": {"namespaces": ["lake-b"]}}, "hudi-job"),
        ({"jobs": {"serviceAccount": {"name": "writer"}}}, "writer"),
        ({"watchNamespaces": ["lake-a"], "jobs": {"serviceAccount": {"create": False}}}, "default"),
    ],
)
def test_jobs_run_under_the_account_that_is_there(helm: Helm, values: dict[str, Any], account: str) -> None:
    (pod,) = pods([only(helm.template(values), "Deployment")])
    assert f"--job-service-account={account}" in pod["containers"][0]["args"]


def test_a_digest_wins_over_a_tag_and_the_version_is_the_default(helm: Helm) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    for values, operator, spark in (
        ({}, f"hudi-operator:{version}", f"hudi-spark:{version}"),
        (MATRIX["digests"], f"hudi-operator@{DIGEST}", f"hudi-spark@{DIGEST}"),
        (MATRIX["private-registry"], "registry.example:5000/team/hudi-operator:1.2", f"hudi-spark:{version}"),
    ):
        container = pods([only(helm.template(values), "Deployment")])[0]["containers"][0]
        assert container["image"] == operator
        assert {"name": "SPARK_IMAGE", "value": spark} in container["env"]


def test_what_is_said_of_the_pods_of_jobs_reaches_the_operator(helm: Helm) -> None:
    objects = helm.template(MATRIX["placed-jobs"])
    pod = pods([only(objects, "Deployment")])[0]
    (path,) = (each.partition("=")[2] for each in pod["containers"][0]["args"] if each.startswith("--job-pods="))
    (mount,) = (each for each in pod["containers"][0]["volumeMounts"] if path.startswith(each["mountPath"] + "/"))
    (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
    text = only(objects, "ConfigMap", volume["configMap"]["name"])["data"][path.rpartition("/")[2]]
    assert json.loads(text) == {name: JOBS[name] for name in ("pods", "podsByNamespace", "maxAttempts")}
    found = read_policies(text)
    assert (found.max_attempts, found.of("lake-a").max_attempts, found.of("lake-b").max_attempts) == (10, 2, None)
    assert (found.of("lake-a").memory, found.of("lake-b").memory) == ("6Gi", "3Gi")
    assert found.of("lake-a").allowed_priority_classes == ("low",)
    assert not any(
        "--job-pods" in each for each in pods([only(helm.template({}), "Deployment")])[0]["containers"][0]["args"]
    )


def test_a_start_on_a_busy_node_has_minutes_before_the_operator_is_asked_whether_it_lives(helm: Helm) -> None:
    """Kubernetes ends one that does not answer; its successor would not begin any faster."""
    (container,) = pods([only(helm.template({}), "Deployment")])[0]["containers"]
    start, life = container["startupProbe"], container["livenessProbe"]
    assert start["httpGet"] == life["httpGet"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 300
    assert life["periodSeconds"] * life["failureThreshold"] <= 60, "one that hangs is ended soon"


def test_two_releases_of_one_namespace_have_a_lease_each(helm: Helm) -> None:
    for release, lease in ((RELEASE, RELEASE), ("blue", "blue-hudi-operator")):
        text = helm.done("template", release, CHART, "--namespace", NAMESPACE, "--kube-version", KUBERNETES)
        objects = [each for each in yaml.safe_load_all(text) if each is not None]
        arguments = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
        assert f"--lease-name={lease}" in arguments
        named = {
            name
            for role in roles(objects)
            for rule in role["rules"]
            if rule["resources"] == ["leases"]
            for name in rule.get("resourceNames", ())
        }
        assert named == {lease}


def test_a_budget_is_there_when_there_is_more_than_one(helm: Helm) -> None:
    kinds = {count: [each["kind"] for each in helm.template({"replicaCount": count})] for count in (1, 2)}
    assert "PodDisruptionBudget" not in kinds[1]
    assert "PodDisruptionBudget" in kinds[2]


def test_what_needs_other_definitions_is_off_until_it_is_asked_for(helm: Helm) -> None:
    groups = {each["apiVersion"].partition("/")[0] for each in helm.template()}
    assert "monitoring.coreos.com" not in groups
    kinds = [each["kind"] for each in helm.template(MATRIX["monitored"])]
    assert {"PodMonitor", "PrometheusRule"} <= set(kinds)
    assert "Service" not in kinds
    by_service = helm.template(MATRIX["monitored-by-service"])
    service, monitor = only(by_service, "Service"), only(by_service, "ServiceMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]


def test_nothing_but_one_port_is_reached(helm: Helm) -> None:
    policy = only(helm.template({"metrics": {"port": 9090}}), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}]}]
    closed = only(helm.template(MATRIX["closed-network"]), "NetworkPolicy")["spec"]
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    assert len(closed["egress"]) == 2
    off = helm.template({"networkPolicy": {"enabled": False}})
    assert "NetworkPolicy" not in {each["kind"] for each in off}


def test_a_job_is_reached_by_its_own_kind_alone(helm: Helm) -> None:
    """Every pod of an attempt has the label that the policy chooses:
    tests/hudi_operator/manifests/test_pods.py."""
    ours = [{"podSelector": {"matchExpressions": [{"key": ATTEMPT, "operator": "Exists"}]}}]
    found = {}
    for case in ("role-only", "closed-jobs"):
        found[case] = only(helm.template(MATRIX[case]), "NetworkPolicy", "hudi-jobs")["spec"]
        assert [found[case]["podSelector"]] == [each["podSelector"] for each in ours]
        assert found[case]["ingress"] == [{"from": ours}]
    assert found["role-only"]["policyTypes"] == ["Ingress"]
    assert found["closed-jobs"]["policyTypes"] == ["Ingress", "Egress"]
    assert found["closed-jobs"]["egress"] == [{"to": ours}, *CLOSED["egress"]]
    off = helm.template({"watchNamespaces": ["lake-a"], "jobs": {"networkPolicy": {"enabled": False}}})
    assert "hudi-jobs" not in {each["metadata"]["name"] for each in off}


def test_a_driver_starts_pods_and_reads_no_secret(helm: Helm) -> None:
    role = only(helm.template({"watchNamespaces": ["lake-a"]}), "Role", "hudi-driver")
    assert {right.resource for right in granted(role["rules"])} == {"pods", "configmaps"}


@pytest.mark.parametrize("case", MATRIX)
def test_nothing_of_ours_is_a_webhook(helm: Helm, case: str) -> None:
    kinds = {each["kind"] for each in (*helm.template(MATRIX[case]), *helm.template(chart=CRDS))}
    assert not [kind for kind in kinds if "Webhook" in kind or kind == "APIService"]


def test_what_the_charts_say_of_our_kinds_names_all_of_them() -> None:
    pages = [
        page for chart in (CHART, CRDS) for page in sorted(chart.rglob("*")) if page.suffix in (".txt", ".yaml", ".lua")
    ]
    texts = {page: page.read_text() for page in pages if not page.name.startswith("hudi.lakeops.dev_")}
    assert not [page.name for page, text in texts.items() if "both kinds" in text.lower()]
    lines = [line for text in texts.values() for line in text.splitlines()]
    some = [line for line in lines if re.search(r"\bHudiTables?\b", line) and re.search(r"\bTableServices?\b", line)]
    assert len(some) >= 5
    assert not [line for line in some if "HudiTableSet" not in line]
