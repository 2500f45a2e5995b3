"""What a resource and the operator's policy say of pods: joined, put into every way of launching,
and refused where it would weaken them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.api.fields.pods import PodPolicies, PodPolicy
from hudi_operator.api.fields.spark import PodSize, SparkSpec
from hudi_operator.api.parsing import parse
from hudi_operator.manifests.batch import job_manifest
from hudi_operator.manifests.pod_parts import joined, refused_parts
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.manifests.policies import read_policies
from hudi_operator.manifests.spark_conf import heap_and_rest
from hudi_table.model.job.jobspec import JobSpec
from tests.hudi_operator.api.test_crds import defaulted, nodes, root
from tests.support.attempts import SETTINGS, WAYS, attempt, made, pods
from tests.support.manifests import PARTS

TAINT = {"key": "hudi", "operator": "Exists"}


def policy(**said: Any) -> PodPolicy:
    found, errors = parse(PodPolicy, said, "jobs.pods")
    assert found is not None, errors
    return found


def size(**said: Any) -> PodSize:
    found, errors = parse(PodSize, said, "spec.spark.driver")
    assert found is not None, errors
    return found


def given(one: PodPolicy) -> PodSettings:
    return replace(SETTINGS, policies=PodPolicies(policy(), {"lake": one}))


def refusals(one: PodPolicy, **said: Any) -> list[str]:
    return [str(each) for each in refused_parts(one, size(**said), "spec.spark.driver")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("role", ["driver", "executor"])
def test_every_way_puts_what_was_said_into_its_pods(way: str, role: str) -> None:
    if (way, role) == ("one pod", "executor"):
        return
    wanted = attempt(way, driver=size(**PARTS), executor=size(instances=2, **PARTS))
    document = made(way, wanted, given(policy(tolerations=[TAINT], volumes=[{"claim": "lake", "path": "/data"}])))
    found = pods(way, document)[role]
    pod, main = found["spec"], found["spec"]["containers"][0]
    assert pod["tolerations"] == [TAINT, *PARTS["tolerations"]]
    assert (pod["nodeSelector"], pod["affinity"]) == (PARTS["nodeSelector"], PARTS["affinity"])
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": {"hudi.lakeops.dev/attempt": wanted.run.name}}
    assert (pod["priorityClassName"], pod["serviceAccountName"]) == ("low", "reader")
    assert found["metadata"]["labels"].items() >= {"team": "lake", "hudi.lakeops.dev/attempt": wanted.run.name}.items()
    assert found["metadata"]["annotations"]["example/owner"] == "lake"
    env = {each["name"]: each for each in main["env"]}
    assert env["MODE"]["value"] == "fast"
    assert env["TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "team.tokens", "key": "t"}}
    assert env["SSL_CERT_FILE"]["value"] == "/etc/hudi-ca/ca.crt"
    assert {"name": "ca-bundle", "mountPath": "/etc/hudi-ca", "readOnly": True} in main["volumeMounts"]
    assert {"name": "volume-0", "mountPath": "/data"} in main["volumeMounts"]
    assert {"name": "volume-0", "persistentVolumeClaim": {"claimName": "lake"}} in pod["volumes"]


def test_cpu_is_asked_for_in_the_words_of_each_launcher() -> None:
    sizes: dict[str, Any] = {
        "driver": size(cpuRequest="250m", cpuLimit="2"),
        "executor": size(instances=2, cpuRequest="500m", cpuLimit="3"),
    }
    job = made("Job", attempt("Job", **sizes))["spec"]["template"]
    assert job["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "250m", "memory": "2Gi"}, "limits": {"memory": "2Gi", "cpu": "2"},
    }  # fmt: skip
    fixed = json.loads(job["metadata"]["annotations"]["hudi.lakeops.dev/job-spec"])["spark"]["fixed"]
    asked = {"spark.kubernetes.executor.request.cores": "500m", "spark.kubernetes.executor.limit.cores": "3"}
    assert fixed.items() >= asked.items()
    kubeflow = made("SparkOperator", attempt("SparkOperator", **sizes))["spec"]
    assert (kubeflow["driver"]["coreRequest"], kubeflow["driver"]["coreLimit"]) == ("250m", "2")
    assert (kubeflow["executor"]["coreRequest"], kubeflow["executor"]["coreLimit"]) == ("500m", "3")
    apache = made("ApacheSparkOperator", attempt("ApacheSparkOperator", **sizes))["spec"]["sparkConf"]
    driver = {"spark.kubernetes.driver.request.cores": "250m", "spark.kubernetes.driver.limit.cores": "2"}
    assert apache.items() >= (asked | driver).items()


LEVELS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "2Gi"),
    ({"pods": {"memory": "3Gi"}}, {}, "3Gi"),
    ({"podsByNamespace": {"lake": {"memory": "4Gi"}}}, {}, "4Gi"),
    ({"pods": {"memory": "3Gi"}, "podsByNamespace": {"lake": {"memory": "4Gi"}}}, {}, "4Gi"),
    ({"pods": {"memory": "3Gi"}, "podsByNamespace": {"team": {"memory": "4Gi"}}}, {}, "3Gi"),
    ({"pods": {"memory": "3Gi"}, "podsByNamespace": {"lake": {"cpuLimit": "4"}}}, {}, "3Gi"),
    ({"pods": {"memory": "3Gi"}}, {"memory": "2Gi"}, "2Gi"),
    ({"pods": {"memory": "3Gi"}, "podsByNamespace": {"lake": {"memory": "4Gi"}}}, {"memory": "5Gi"}, "5Gi"),
]
"""(what the chart and the namespace say, what the resource says, what its pods of namespace `lake`
get)."""


def memory_told(way: str, role: str, document: dict[str, Any]) -> tuple[str, str]:
    """(heap, rest) that a launcher's object tells Spark."""
    if way == "SparkOperator":
        return document["spec"][role]["memory"], document["spec"][role]["memoryOverhead"]
    conf = document["spec"]["sparkConf"] if way == "ApacheSparkOperator" else fixed_of(document)
    return conf[f"spark.{role}.memory"], conf[f"spark.{role}.memoryOverhead"]


def fixed_of(document: dict[str, Any]) -> dict[str, str]:
    """The properties of Spark that a Job's driver is given."""
    spec = json.loads(document["spec"]["template"]["metadata"]["annotations"]["hudi.lakeops.dev/job-spec"])
    found: dict[str, str] = spec["spark"]["fixed"]
    return found


@pytest.mark.parametrize(("operator", "resource", "memory"), LEVELS)
@pytest.mark.parametrize("way", WAYS)
def test_memory_is_the_resources_else_the_namespaces_else_the_charts_else_2gi(
    way: str, operator: dict[str, Any], resource: dict[str, Any], memory: str
) -> None:
    settings = replace(SETTINGS, policies=read_policies(json.dumps(operator)))
    document = made(way, attempt(way, driver=size(**resource), executor=size(instances=2, **resource)), settings)
    for role in ("driver", "executor"):
        if way in ("one pod", "Job") and role == "driver":
            found = document["spec"]["template"]["spec"]["containers"][0]["resources"]
            assert (found["requests"]["memory"], found["limits"]["memory"]) == (memory, memory)
        elif way != "one pod":
            assert memory_told(way, role, document) == heap_and_rest(memory)
    if way == "Job":
        assert fixed_of(document)["spark.driver.memory"] == heap_and_rest(memory)[0]
        driver = attempt(way, driver=size(**resource), executor=size(instances=0))
        assert fixed_of(made(way, driver, settings))["spark.driver.memory"] == heap_and_rest(memory)[0]


def test_memory_has_no_default_so_that_a_resource_is_silent_where_nobody_wrote_it() -> None:
    """What the definition fills in would win over the operator's words of the namespace."""
    spark = defaulted(root("HudiTable")["properties"]["spec"], {})["spark"]
    assert [spark[role].get("memory") for role in ("driver", "executor")] == [None, None]
    assert [path for path, node in nodes(root("HudiTable")) if path.endswith("r.memory") and "default" in node] == []


def test_a_driver_and_its_executors_may_each_say_their_memory() -> None:
    for way in WAYS[1:]:
        wanted = attempt(way, driver=size(memory="5Gi"), executor=size(instances=2))
        document = made(way, wanted, given(policy(memory="3Gi")))
        assert memory_told(way, "executor", document) == heap_and_rest("3Gi")
        if way == "Job":
            assert fixed_of(document)["spark.driver.memory"] == heap_and_rest("5Gi")[0]
        else:
            assert memory_told(way, "driver", document) == heap_and_rest("5Gi")


def resources(kind: str, spark: SparkSpec, one: PodPolicy, engine: str = "Local") -> dict[str, Any]:
    wanted = attempt("one pod")
    spec = JobSpec(wanted.run.name, {}, {"type": kind}, engine=engine)
    template = job_manifest(replace(wanted, spec=spec, spark=spark), given(one))["spec"]["template"]
    found: dict[str, Any] = template["spec"]["containers"][0]["resources"]
    return found


def test_work_that_reads_no_rows_gets_a_small_pod() -> None:
    spark = SparkSpec(driver=size(cores=4, memory="8Gi"))
    small = {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}}
    for kind in ("Cleaning", "Archiving", "Savepoint", "Rollback", "Restore", "PartitionTTL", "Purge"):
        assert resources(kind, spark, policy(memory="3Gi")) == small
    for kind in ("Ingest", "Compaction", "Clustering", "Repair", "Indexing"):
        assert resources(kind, spark, policy())["limits"] == {"memory": "8Gi"}
        assert resources(kind, SparkSpec(), policy(memory="3Gi"))["limits"] == {"memory": "3Gi"}
    larger = resources("Cleaning", spark, policy(light={"cpu": "200m", "memory": "1Gi"}))
    assert larger["requests"] == {"cpu": "200m", "memory": "1Gi"}
    own, errors = parse(SparkSpec, {"light": {"memory": "2Gi"}}, "spec.spark")
    assert own is not None, errors
    assert resources("Cleaning", own, policy(light={"memory": "1Gi"}))["limits"] == {"memory": "2Gi"}


def test_the_policy_of_a_namespace_wins_over_a_resource() -> None:
    one = policy(nodeSelector={"pool": "hudi"}, env=[{"name": "MODE", "value": "slow"}], labels={"team": "ops"})
    found = joined(
        one,
        size(nodeSelector={"pool": "gpu", "zone": "a"}, env=[{"name": "MODE", "value": "fast"}], labels={"team": "x"}),
    )
    assert (found.node_selector, found.labels) == ({"pool": "hudi", "zone": "a"}, {"team": "ops"})
    assert [(each.name, each.value) for each in found.env] == [("MODE", "slow")]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"serviceAccountName": "cluster-admin"}, "serviceAccountName: is 'cluster-admin', and those of this namespace are reader"),
        ({"priorityClassName": "system-node-critical"}, "priorityClassName: is 'system-node-critical', and none is allowed"),
        ({"labels": {"hudi.lakeops.dev/attempt": "x"}}, "labels[hudi.lakeops.dev/attempt]: is not for a manifest"),
        ({"labels": {"spark-role": "driver"}}, "labels[spark-role]: is not for a manifest"),
        ({"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}, "is not for a manifest"),
        ({"labels": {"a b": "x"}}, "is no name that Kubernetes takes"),
        ({"labels": {"a": "x\ny"}}, "no value that Kubernetes takes"),
        ({"labels": {"a": "x\n"}}, "no value that Kubernetes takes"),
        ({"labels": {"a\n": "x"}}, "is no name that Kubernetes takes"),
        ({"annotations": {"container.apparmor.security.beta.kubernetes.io/job": "unconfined"}}, "is not for a manifest"),
        ({"annotations": {"hudi.lakeops.dev/job-spec": "{}"}}, "is not for a manifest"),
        ({"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "k"}]}, "a credential: put it into the Secret"),
        ({"env": [{"name": "LD_PRELOAD", "value": "/tmp/x.so"}]}, "may load code or change Spark"),
        ({"env": [{"name": "JDK_JAVA_OPTIONS", "value": "-javaagent:x"}]}, "may load code or change Spark"),
        ({"env": [{"name": "PYTHONPATH", "value": "/tmp"}]}, "may load code or change Spark"),
        ({"env": [{"name": "HUDI_POD_IP", "value": "1.2.3.4"}]}, "may load code or change Spark"),
        ({"env": [{"name": "SSL_CERT_FILE", "value": "/tmp/x"}]}, "which caBundle sets"),
    ],
)  # fmt: skip
def test_what_would_weaken_a_pod_is_refused_by_name(said: dict[str, Any], words: str) -> None:
    (found,) = refusals(policy(allowedServiceAccounts=["reader"]), **said)
    assert words in found


def test_what_is_allowed_is_taken() -> None:
    one = policy(allowedServiceAccounts=["reader"], allowedPriorityClasses=["low"])
    assert refusals(one, **PARTS) == []


def test_what_we_set_ourselves_is_not_replaced() -> None:
    """Whatever a policy or a document that was stored before says."""
    loose = size(
        labels={"hudi.lakeops.dev/attempt": "x"},
        annotations={"hudi.lakeops.dev/job-spec": "{}"},
        env=[{"name": "HOME", "value": "/"}],
    )
    wanted = attempt("Job", driver=loose, executor=size(instances=1))
    found = pods("Job", made("Job", wanted))["driver"]
    assert found["metadata"]["labels"]["hudi.lakeops.dev/attempt"] == wanted.run.name
    assert json.loads(found["metadata"]["annotations"]["hudi.lakeops.dev/job-spec"])["attempt"] == wanted.run.name
    assert [each for each in found["spec"]["containers"][0]["env"] if each["name"] == "HOME"] == [
        {"name": "HOME", "value": "/tmp"}
    ]
