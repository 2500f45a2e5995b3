"""The entry point of the spark image: which command line each verb becomes. The image itself is
tested by `e2e`."""

from __future__ import annotations

import sys

import pytest

from image.entrypoint import command

EXECUTOR = {
    "SPARK_HOME": "/opt/spark",
    "JAVA_HOME": "/opt/java",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "flights-exec-1",
}


def test_a_job_runs_in_the_process_of_the_entry_point() -> None:
    assert command(["job", "/etc/hudi/job-spec.json", "/dev/termination-log"], {}) == [
        sys.executable, "-m", "hudi_spark.jobs", "/etc/hudi/job-spec.json", "/dev/termination-log",
    ]  # fmt: skip


def test_a_driver_is_submitted_in_client_mode_and_binds_to_its_pods_address() -> None:
    given = [
        "driver",
        "--properties-file",
        "/opt/spark/conf/spark.properties",
        "--class",
        "X",
        "local:///opt/hudi/job.py",
        "a",
    ]
    found = command(given, {"SPARK_HOME": "/opt/spark", "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1"})
    assert found[0] == "/opt/spark/bin/spark-submit"
    assert "spark.driver.bindAddress=10.0.0.1" in found
    assert found[-len(given) + 1 :] == given[1:]
    assert found[found.index("--deploy-mode") + 1] == "client"


def test_an_executor_is_told_what_spark_says_in_variables() -> None:
    found = command(["executor"], EXECUTOR)
    assert found[0] == "/opt/java/bin/java"
    assert found[found.index("-cp") + 1] == "/opt/spark/jars/*"
    told = found[found.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend") + 1 :]
    assert dict(zip(told[::2], told[1::2], strict=True)) == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "1",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.2",
        "--resourceProfileId": "0",
        "--podName": "flights-exec-1",
    }
    assert {"-Xms1024m", "-Xmx1024m"} <= set(found)


def test_java_options_keep_the_order_of_their_numbers() -> None:
    options = {f"SPARK_JAVA_OPT_{n}": f"-Dn={n}" for n in (10, 2, 0, 1)}
    assert command(["executor"], EXECUTOR | options)[1:5] == ["-Dn=0", "-Dn=1", "-Dn=2", "-Dn=10"]


def test_spark_s_configuration_comes_before_its_jars() -> None:
    found = command(["executor"], EXECUTOR | {"SPARK_CONF_DIR": "/opt/spark/conf"})
    assert found[found.index("-cp") + 1] == "/opt/spark/conf:/opt/spark/jars/*"


@pytest.mark.parametrize("name", EXECUTOR)
def test_an_executor_without_a_variable_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        command(["executor"], {key: value for key, value in EXECUTOR.items() if key != name})


@pytest.mark.parametrize(
    "arguments", [[], ["job"], ["job", "a"], ["job", "a", "b", "c"], ["driver"], ["executor", "x"], ["sh"]]
)
def test_anything_else_is_a_mistake_of_usage(arguments: list[str]) -> None:
    with pytest.raises(ValueError, match="usage"):
        command(arguments, EXECUTOR)
