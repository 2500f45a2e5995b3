"""What the two public Spark operators must be given, and must not be. That their schemas take it is
tested in tests/cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.api.fields.spark import PodSize, SparkSpec
from hudi_operator.api.resources import Identity, Key
from hudi_operator.api.status import RunStatus
from hudi_operator.manifests.attempts import attempt_name
from hudi_operator.manifests.pods import Attempt, PodSettings
from hudi_operator.manifests.spark_applications import apache_application, kubeflow_application
from hudi_table.model.job.jobspec import JobSpec

SETTINGS = PodSettings("registry.example/spark@sha256:0", pull_secrets=("pull",), service_account="hudi-job")
SIZES = SparkSpec(driver=PodSize(1, 2, "4Gi"), executor=PodSize(3, 2, "5Gi"))
CONF = {"spark.sql.shuffle.partitions": "4"}
REFUSED = (
    "spark.master",
    "spark.kubernetes.driver.master",
    "spark.kubernetes.container.image",
    "spark.kubernetes.driver.container.image",
    "spark.kubernetes.executor.container.image",
    "spark.kubernetes.authenticate.driver.serviceAccountName",
    "spark.kubernetes.authenticate.executor.serviceAccountName",
)
"""Properties that the admission of kubeflow's operator refuses, with those of tokens."""


def attempt() -> Attempt:
    name = attempt_name("flights", "uid", "Ingest/feed", 1, 1)
    run = RunStatus(name, "Ingest/feed", "Running", 1, 1)
    spec = JobSpec(name, {}, {}, spark={"conf": dict(CONF)})
    return Attempt(Identity(Key("HudiTable", "lake", "flights"), "uid", 1), run, spec, "s3", SIZES)


def test_kubeflow_is_told_nothing_in_properties_that_its_admission_refuses() -> None:
    conf = kubeflow_application(attempt(), SETTINGS)["spec"]["sparkConf"]
    assert not [key for key in conf if key in REFUSED or "oauth" in key.lower()]
    assert conf.items() >= CONF.items()


def test_apache_is_told_image_and_accounts_in_properties() -> None:
    conf = apache_application(attempt(), SETTINGS)["spec"]["sparkConf"]
    assert conf["spark.kubernetes.container.image"] == SETTINGS.image
    assert conf["spark.kubernetes.container.image.pullSecrets"] == "pull"
    assert conf["spark.kubernetes.authenticate.driver.serviceAccountName"] == "hudi-driver"
    assert conf["spark.kubernetes.authenticate.executor.serviceAccountName"] == "hudi-job"
    assert conf.items() >= CONF.items()


@pytest.mark.parametrize("application", [kubeflow_application, apache_application])
def test_an_application_is_never_restarted_and_goes_after_a_day(application: Any) -> None:
    text = str(application(attempt(), SETTINGS)["spec"])
    assert "'Never'" in text
    assert "86400" in text


def test_apaches_pods_are_kept_for_a_day_for_their_result_lies_in_them_alone() -> None:
    tolerations = apache_application(attempt(), SETTINGS)["spec"]["applicationTolerations"]
    assert tolerations["resourceRetainPolicy"] == "Always"
    assert tolerations["resourceRetainDurationMillis"] == tolerations["ttlAfterStopMillis"] == 86_400_000


def test_kubeflow_is_told_of_pull_secrets_where_there_are_any() -> None:
    assert kubeflow_application(attempt(), SETTINGS)["spec"]["imagePullSecrets"] == ["pull"]
    assert "imagePullSecrets" not in kubeflow_application(attempt(), replace(SETTINGS, pull_secrets=()))["spec"]


def test_sizes_are_those_of_the_table() -> None:
    spec = kubeflow_application(attempt(), SETTINGS)["spec"]
    assert (spec["driver"]["cores"], spec["driver"]["memory"], spec["driver"]["memoryOverhead"]) == (
        2,
        "1638m",
        "2458m",
    )
    assert (spec["executor"]["instances"], spec["executor"]["cores"], spec["executor"]["memory"]) == (3, 2, "2048m")


def test_the_driver_of_the_longest_name_still_has_a_name() -> None:
    name = attempt_name("f" * 200, "uid", "Ingest/feed", 10**6, 10**4)
    assert len(f"{name}-driver-svc") <= 63
