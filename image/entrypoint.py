"""The entry point of the spark image: becomes the process that a pod asks for.

    job SPEC RESULT    the job of a JobSpec, in this process
    driver ARGS…       what Spark's cluster mode hands a driver: spark-submit, in client mode
    executor           a Spark executor, as the variables SPARK_* describe it

Standard library only: it is replaced by what it starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

USAGE = 64
JAVA_OPTION = "SPARK_JAVA_OPT_"
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
EXECUTOR = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
"""What the backend is told, and the variable that Spark says it with."""


def command(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command line that `arguments` ask for. Raises ValueError if it is none, or a variable is
    missing."""
    match list(arguments):
        case ["job", _, _]:
            return [sys.executable, "-m", "hudi_spark.jobs", *arguments[1:]]
        case ["driver", *rest] if rest:
            address = _given(environment, "SPARK_DRIVER_BIND_ADDRESS")
            conf = (f"spark.driver.bindAddress={address}", f"spark.executorEnv.SPARK_DRIVER_POD_IP={address}")
            told = [part for pair in conf for part in ("--conf", pair)]
            return [f"{_given(environment, 'SPARK_HOME')}/bin/spark-submit", *told, "--deploy-mode", "client", *rest]
        case ["executor"]:
            return _executor(environment)
    raise ValueError(f"usage: job SPEC RESULT | driver ARGS… | executor, not {' '.join(arguments)!r}")


def _executor(environment: Mapping[str, str]) -> list[str]:
    memory = _given(environment, "SPARK_EXECUTOR_MEMORY")
    # Spark's configuration, where it mounts one, comes before its jars.
    paths = [environment.get("SPARK_CONF_DIR", ""), f"{_given(environment, 'SPARK_HOME')}/jars/*"]
    told = [part for option, name in EXECUTOR.items() for part in (option, _given(environment, name))]
    java = f"{_given(environment, 'JAVA_HOME')}/bin/java"
    heap = [f"-Xms{memory}", f"-Xmx{memory}"]
    return [java, *_java_options(environment), *heap, "-cp", ":".join(filter(None, paths)), BACKEND, *told]


def _java_options(environment: Mapping[str, str]) -> list[str]:
    """In the order of their numbers: of two that contradict each other the JVM takes the later."""
    numbers = (name.removeprefix(JAVA_OPTION) for name in environment if name.startswith(JAVA_OPTION))
    return [environment[f"{JAVA_OPTION}{n}"] for n in sorted((n for n in numbers if n.isdigit()), key=int)]


def _given(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise ValueError(f"the variable {name} is not set: the pod was not made by Spark")
    return environment[name]


def main() -> None:
    """Become what is asked for. Raises SystemExit only where that cannot be."""
    try:
        wanted = command(sys.argv[1:], os.environ)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(USAGE)
    sys.stderr.flush()
    os.execv(wanted[0], wanted)  # noqa: S606 - it is to become this program


if __name__ == "__main__":
    main()
