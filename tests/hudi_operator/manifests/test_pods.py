"""What a pod may be, whatever a manifest says: more than Pod Security `restricted` asks for, which
takes a writable root file system, any account and any Secret. That a real API server admits them is
tested in tests/charts.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_operator.api.fields.pods import PodParts
from hudi_operator.api.fields.shaping import TransformSpec
from hudi_operator.api.fields.spark import PodSize, SparkSpec
from hudi_operator.manifests.pod_parts import ATTEMPT
from hudi_operator.manifests.spark_conf import refused
from tests.support.attempts import CREDENTIALS, SETTINGS, WAYS, attempt, made, pods
from tests.support.scale import scaled

WIRE = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
NASTY = st.sampled_from(['"', "'", "\\", "\n", "${X}", "$(X)", "{{X}}", "---", "hostPath: /", "../..", "\x00", "é"])
WORDS = st.lists(st.sampled_from(["canary"]) | NASTY | st.text(max_size=8), min_size=1, max_size=4).map("canary".join)
NAMES = st.from_regex(r"[a-z]([a-z0-9.-]{0,40}[a-z0-9])?", fullmatch=True)
SIZES = st.builds(PodSize, st.integers(0, 20), st.integers(1, 64), st.sampled_from(["1Mi", "2Gi", "7G", "64Gi"]))
CONF = st.dictionaries(st.sampled_from(["spark.sql.shuffle.partitions", "spark.task.maxFailures"]), WORDS, max_size=2)
ATTEMPTS = {
    "table": NAMES, "location": WORDS, "secret": st.just("") | NAMES, "conf": CONF, "driver": SIZES, "executor": SIZES,
}  # fmt: skip


def wrong(role: str, template: dict[str, Any], secret: str, executors: int) -> list[str]:
    """What a pod is that it must not be."""
    spec = template["spec"]
    (container,) = spec["containers"]
    driver_of_executors = role == "driver" and executors > 0
    said = {
        "is not the image that the operator was given": container["image"] != SETTINGS.image,
        "has a writable root": container["securityContext"].get("readOnlyRootFilesystem") is not True,
        "may get rights": container["securityContext"].get("allowPrivilegeEscalation") is not False,
        "has capabilities": container["securityContext"].get("capabilities") != {"drop": ["ALL"]},
        "is privileged": "privileged" in container["securityContext"],
        "may be root": spec["securityContext"].get("runAsNonRoot") is not True or spec["securityContext"]["runAsUser"] < 1000,
        "has no seccomp profile": spec["securityContext"].get("seccompProfile") != {"type": "RuntimeDefault"},
        "has another account": spec["serviceAccountName"] != ("hudi-driver" if driver_of_executors else "hudi-job"),
        "holds a token": spec["automountServiceAccountToken"] is not driver_of_executors,
        "shares with its node": bool({"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & spec.keys()),
        "has more containers": bool({"initContainers", "ephemeralContainers"} & spec.keys()),
        "takes a whole Secret": "envFrom" in container,
        "mounts more": {kind for each in spec["volumes"] for kind in each} - {"name", "emptyDir", "downwardAPI"} != set(),
        "has scratch without bound": any(not each["emptyDir"].get("sizeLimit") for each in spec["volumes"] if "emptyDir" in each),
        "refers to other Secrets": secrets(container) != ({(secret, key) for key in CREDENTIALS} if secret and role == "driver" else set()),
        "runs another command": "command" in container or container.get("args", ["job"])[0] != "job",
    }  # fmt: skip
    return [each for each, is_so in said.items() if is_so]


def secrets(container: dict[str, Any]) -> set[tuple[str, str]]:
    references = [each["valueFrom"]["secretKeyRef"] for each in container["env"] if "secretKeyRef" in str(each)]
    return {(each["name"], each["key"]) for each in references}


@pytest.mark.parametrize("way", WAYS)
def test_every_pod_is_closed_whatever_a_manifest_says(way: str) -> None:
    @settings(max_examples=scaled(60, quick=15))
    @given(st.fixed_dictionaries(ATTEMPTS))
    def judge(said: dict[str, Any]) -> None:
        executors = said["executor"].instances if way != "one pod" else 0
        if way in ("SparkOperator", "ApacheSparkOperator") and not executors:
            return  # such work is a Job
        for role, template in pods(way, made(way, attempt(way, **said))).items():
            assert wrong(role, template, said["secret"], executors) == []
            assert ATTEMPT in template["metadata"]["labels"], "a NetworkPolicy chooses by it"
            assert "canary" not in json.dumps(template["spec"]), "what a manifest says is in no field of a pod"

    judge()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"serviceAccountName": "other"}, "has another account"),
        ({"hostNetwork": True}, "shares with its node"),
        ({"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}, "mounts more"),
        ({"volumes": [{"name": "x", "secret": {"secretName": "other"}}]}, "mounts more"),
        ({"automountServiceAccountToken": True}, "holds a token"),
    ],
)
def test_a_pod_that_is_open_would_be_told(change: dict[str, Any], word: str) -> None:
    template = pods("one pod", made("one pod", attempt("one pod")))["driver"]
    assert wrong("driver", {"spec": {**template["spec"], **change}}, "s3", 0) == [word]
    (container,) = template["spec"]["containers"]
    container["securityContext"]["readOnlyRootFilesystem"] = False
    assert wrong("driver", template, "s3", 0) == ["has a writable root"]


def test_a_manifest_says_of_pods_their_sizes_and_properties_of_spark_alone() -> None:
    """There is no pod template to be checked: a new field of a manifest that reaches a pod changes
    this test."""
    assert [each.name for each in fields(SparkSpec)] == ["launcher", "driver", "executor", "light", "conf"]
    assert {each.name for each in fields(PodSize)} - {each.name for each in fields(PodParts)} == {
        "instances",
        "cores",
        "memory",
    }
    assert {each.name for each in fields(PodParts)} == {
        "tolerations", "node_selector", "affinity", "topology_spread_constraints", "priority_class_name", "service_account_name", "labels",
        "annotations", "env", "ca_bundle", "cpu_request", "cpu_limit",
    }  # fmt: skip
    assert [each.name for each in fields(TransformSpec)] == ["sql", "flatten", "function", "on_fail"]


@pytest.mark.parametrize("way", WAYS[1:])
def test_driver_and_executors_know_each_other_and_nobody_listens(way: str) -> None:
    """Credentials of the store travel between them. No manifest may change that."""
    document = made(way, attempt(way))
    spec = document["spec"]
    given_conf = spec.get("sparkConf")
    if given_conf is None:
        given_conf = json.loads(pods(way, document)["driver"]["metadata"]["annotations"]["hudi.lakeops.dev/job-spec"])[
            "spark"
        ]["fixed"]
    assert given_conf.items() >= WIRE.items()
    for key in (
        *WIRE,
        "spark.authenticate.secret",
        "spark.network.crypto.cipher",
        "spark.io.encryption.enabled",
        "spark.ui.enabled",
    ):
        assert refused({key: "false"}), key
