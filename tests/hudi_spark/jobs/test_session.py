"""The properties of a job's session: alone, with executors of its own, and in a driver that was
submitted."""

from __future__ import annotations

import subprocess
import sys

from hudi_operator.api.fields.spark import PodSize, SparkSpec
from hudi_operator.manifests.batch import POD_IP, POD_NAME
from hudi_operator.manifests.spark_conf import alone, client_mode, totals
from hudi_spark.jobs import session
from hudi_spark.jobs.memory import SUBMITTED
from hudi_spark.jobs.session import properties
from hudi_table.model.job.jobspec import JobSpec

CONF = {"spark.sql.adaptive.enabled": "false"}
SPARK = SparkSpec(driver=PodSize(cores=3), executor=PodSize(4, 2, "4Gi"))
POD = {POD_IP: "10.0.0.7", POD_NAME: "flights-1-abc"}


def job(fixed: dict[str, str] | None = None, **conf: str) -> JobSpec:
    given = {"fixed": fixed} if fixed is not None else {}
    return JobSpec("flights-1", {}, {}, spark={"conf": {**CONF, **conf}, **given})


def with_executors() -> JobSpec:
    return job(
        client_mode(SPARK, "lake", "flights-1", "/etc/hudi/executor.json", {"spark.kubernetes.container.image": "i"})
    )


def test_a_job_without_a_word_of_its_launcher_is_alone_on_its_machine() -> None:
    found = properties(job(), {})
    assert (found["spark.master"], found["spark.driver.host"]) == ("local[*]", "127.0.0.1")
    assert found["spark.sql.adaptive.enabled"] == "false"


def test_a_driver_alone_in_its_pod_takes_the_cores_of_the_pod() -> None:
    assert properties(job(alone(SPARK)), POD)["spark.master"] == "local[3]"


def test_a_driver_of_executors_gives_them_its_own_address_and_owns_them() -> None:
    found = properties(with_executors(), POD)
    assert found["spark.master"] == "k8s://https://kubernetes.default.svc"
    assert (found["spark.driver.host"], found["spark.driver.bindAddress"]) == ("10.0.0.7", "10.0.0.7")
    assert found["spark.kubernetes.driver.pod.name"] == "flights-1-abc"
    assert (found["spark.executor.instances"], found["spark.sql.shuffle.partitions"]) == ("4", "8")
    assert (found["spark.authenticate"], found["spark.network.crypto.enabled"]) == ("true", "true")


def test_a_submitted_driver_keeps_master_and_addresses_of_its_submission() -> None:
    found = properties(job(totals(SPARK)), {SUBMITTED: "25333"}, short=True)
    assert not {"spark.master", "spark.driver.host", "spark.driver.bindAddress", "spark.driver.extraJavaOptions"} & set(
        found
    )
    assert found["spark.sql.shuffle.partitions"] == "8"
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_what_the_launcher_says_wins_over_the_manifest() -> None:
    found = properties(job(alone(SPARK), **{"spark.master": "spark://elsewhere"}), {})
    assert found["spark.master"] == "local[3]"


def test_launcher_and_job_name_the_same_variables() -> None:
    assert (session.POD_IP, session.POD_NAME) == (POD_IP, POD_NAME)


def test_a_spark_that_does_not_start_is_told_in_a_line_and_may_be_tried_again() -> None:
    program = (
        "from hudi_spark.jobs.session import session\n"
        "from hudi_table.errors import UnavailableError\n"
        "from hudi_table.model.job.jobspec import JobSpec\n"
        "spec = JobSpec(attempt='a', table={}, work={}, spark={'fixed': {'spark.master': 'nowhere'}})\n"
        "try:\n    session(spec)\n"
        "except UnavailableError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    exited = "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."
    assert done.stdout == f"Spark did not start ({exited}): the log of the driver says more\n"
