"""The Spark session of a job: here alone, with executors that it starts itself, or in a driver that
was submitted.

What decides is the JobSpec and the environment: `spark.fixed` is the launcher's and wins over
everything; a submitted driver has its master, addresses and JVM from whoever submitted it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_spark.jobs.memory import SUBMITTED
from hudi_table.errors import UnavailableError
from hudi_table.model.job.jobspec import JobSpec

POD_IP, POD_NAME = "HUDI_POD_IP", "HUDI_POD_NAME"
"""Environment variables by which the pod of a driver knows itself."""
_EXECUTORS = ("spark.executor.instances", "spark.executor.cores")
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.python.daemon.module": "hudi_spark.daemon",
}
ALONE = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
SHORT = {
    # A JVM that lives for seconds spends more on optimising its code than the code then saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
FIXED = {
    # Partition paths and keys made by date functions must not depend on where a job runs.
    "spark.sql.session.timeZone": "UTC",
    # Text in ${…} would be replaced after the transform was checked.
    "spark.sql.variable.substitute": "false",
}


def session(spec: JobSpec, *, short: bool = False) -> SparkSession:
    """A session with the job's properties over our defaults; a few of ours cannot be changed.
    Raises UnavailableError if Spark does not start: most often its executors do not, which another
    attempt may see otherwise."""
    conf = properties(spec, os.environ, short=short)
    if conf.get("spark.master", "").startswith("local"):
        # Workers would take whatever python3 is first in the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(spec.attempt)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (Py4JError, PySparkException) as error:
        raise UnavailableError(f"Spark did not start ({_cause(error)}): the log of the driver says more") from error


def _cause(error: Exception) -> str:
    """What the JVM said, without the places where it said so."""
    lines = str(error).splitlines() or [type(error).__name__]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def properties(spec: JobSpec, environment: Mapping[str, str], *, short: bool = False) -> dict[str, str]:
    """The properties of a job's session. `short`: of a job that lives for seconds."""
    fixed = {str(k): str(v) for k, v in spec.spark.get("fixed", {}).items()}
    submitted = SUBMITTED in environment
    conf = {
        **DEFAULTS,
        **({} if submitted else ALONE),
        **(SHORT if short and not submitted else {}),
        **{str(k): str(v) for k, v in spec.spark.get("conf", {}).items()},
        **FIXED,
        **fixed,
        **(_pod(environment) if not submitted and _in_cluster(fixed) else {}),
    }
    executors = [int(fixed[name]) for name in _EXECUTORS if name in fixed]
    tasks = executors[0] * executors[1] if len(executors) == len(_EXECUTORS) else os.cpu_count() or 0
    conf.setdefault("spark.sql.shuffle.partitions", str(max(2, tasks)))
    return conf


def end_executors() -> None:
    """Let the executors go that this driver started: their pods would stay until the driver's is
    deleted, which may be a day away."""
    # The result stands already: whatever has become of the JVM, the job has ended as it says.
    with contextlib.suppress(PySparkException, Py4JError, OSError):
        active = SparkSession.getActiveSession()
        if (
            active is not None
            and SUBMITTED not in os.environ
            and _in_cluster(dict(active.sparkContext.getConf().getAll()))
        ):
            active.stop()


def _in_cluster(fixed: Mapping[str, str]) -> bool:
    return str(fixed.get("spark.master", "")).startswith("k8s:")


def _pod(environment: Mapping[str, str]) -> dict[str, str]:
    """Executors dial the address that the driver gives them, and belong to its pod. Raises KeyError
    outside of one."""
    address = environment[POD_IP]
    return {
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.kubernetes.driver.pod.name": environment[POD_NAME],
    }
