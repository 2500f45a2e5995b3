"""Spark properties of attempts: which of a manifest's are taken, and which the operator sets
itself.

What a manifest says is data: it may tune Spark, and may neither name code to load nor change pods,
wire or master.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hudi_operator.api.fields.spark import SparkSpec
from hudi_operator.api.parsing import FieldError
from hudi_operator.manifests.quantities import bytes_of

SPARK_VERSION, SCALA_VERSION = "4.3.0", "2.13"
"""What the image of the jobs holds; a test compares it with the locked pyspark."""
HEAP_MIB_MIN, REST_MIB_MIN = 512, 384
HEAP_SHARE = 0.4
"""Of a pod's memory; the rest is Python's, where the rows are."""
DRIVER_PORT, BLOCK_PORT = 7078, 7079
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_ALLOWED = re.compile(
    r"spark\.(sql\.(adaptive\.|shuffle\.|optimizer\.|join\.|sortMergeJoinExec\.|cartesianProductExec\.|codegen\.|ansi\.|cbo\.|statistics\."
    r"|parquet\.|orc\.|json\.|csv\.|files\.|inMemoryColumnarStorage\.|windowExec\.|bucketing\.|sources\.(bucketing|v2|parallelPartition)"
    r"|execution\.(?!pyspark\.|datasources\.)|legacy\.(time|json|csv|parquet|size|cast|allow|char|decimal)|autoBroadcastJoinThreshold$"
    r"|broadcastTimeout$|maxBroadcastTableSize$|caseSensitive$|timestampType$|mapKeyDedupPolicy$|storeAssignmentPolicy$"
    r"|leafNodeDefaultParallelism$|limit\.|subquery\.|exchange\.|debug\.|columnNameOfCorruptRecord$|maxPlanStringLength$"
    r"|maxSinglePartitionBytes$|maxMetadataStringLength$|decimalOperations\.|crossJoin\.|constraintPropagation\.|session\.timeZone$)"
    r"|default\.parallelism$|task\.(?!resource)|memory\.|locality\.|speculation|network\.timeout|rpc\.|reducer\.|stage\."
    r"|scheduler\.(?!allocation)|broadcast\.|storage\.(?!decommission|replication)|cleaner\.|excludeOnFailure\."
    r"|executor\.heartbeatInterval$|shuffle\.(?!manager|sort\.io|service|push|streaming|mapStatus)"
    r"|python\.worker\.(?!module)|driver\.maxResultSize$|log\.level$)"
)
_NAMES_CODE = re.compile(
    r"(class|Class|Listener|Provider|[pP]lugin|[fF]actory|[sS]erializer$|[dD]aemon|[mM]odule|[jJ]ars?\b|[uU]r[il]|\.impl$|[sS]cript\b|discovery)"
)
_REPLACED = "${"
"""Spark puts the environment's and the JVM's own values in place of what follows, credentials among
them."""


def refused(conf: Mapping[str, str]) -> tuple[FieldError, ...]:
    """The properties of a manifest that no job is started with, each by name."""
    return tuple(
        FieldError(f"spec.spark.conf[{key}]", why)
        for key in sorted(conf)
        if (why := _why_not(key, conf[key])) is not None
    )


def _why_not(key: str, value: str) -> str | None:
    if _ALLOWED.match(key) is None or _NAMES_CODE.search(key) is not None or not key.isprintable():
        return "is not for a manifest to set: it is the operator's, or may load code; remove it"
    if _REPLACED in value:
        return (
            f"holds {_REPLACED}, which Spark would replace by what the job's environment holds; write the value itself"
        )
    return None


def heap_and_rest(memory: str) -> tuple[str, str]:
    """The heap of the JVM in a pod of so much memory, and what Spark is to add to it, as Spark
    writes sizes."""
    total = bytes_of(memory) >> 20
    heap = max(HEAP_MIB_MIN, int(total * HEAP_SHARE))
    return f"{heap}m", f"{max(REST_MIB_MIN, total - heap)}m"


def memory_conf(role: str, memory: str) -> dict[str, str]:
    """The same as properties of Spark, which makes the pod of that role."""
    heap, rest = heap_and_rest(memory)
    return {f"spark.{role}.memory": heap, f"spark.{role}.memoryOverhead": rest}


def totals(spark: SparkSpec) -> dict[str, str]:
    """How many tasks run at once on executors: what a driver must know of them whoever asks for
    them."""
    return {
        "spark.executor.instances": str(spark.executor.instances),
        "spark.executor.cores": str(spark.executor.cores),
    }


def wire() -> dict[str, str]:
    """Driver and executors know each other and nobody listens: credentials of the store travel
    between them."""
    return {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def leaves() -> dict[str, str]:
    """A driver looks for no services and volume claims to delete: it made none, and its Role does
    not speak of them. What an operator of Spark makes for it goes with its pod."""
    return {
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    }


def alone(spark: SparkSpec) -> dict[str, str]:
    """A driver that is all of Spark."""
    return {"spark.master": f"local[{spark.driver.cores}]"}


def client_mode(
    spark: SparkSpec, namespace: str, prefix: str, template: str, pods: Mapping[str, str]
) -> dict[str, str]:
    """A driver that starts executors itself: pods named from `prefix`, made from the file
    `template`, with what else `pods` says of them."""
    return {
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_PORT),
        "spark.blockManager.port": str(BLOCK_PORT),
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.authenticate.oauthTokenFile": f"{_TOKEN}/token",
        "spark.kubernetes.authenticate.caCertFile": f"{_TOKEN}/ca.crt",
        "spark.kubernetes.executor.podNamePrefix": prefix,
        "spark.kubernetes.executor.podTemplateFile": template,
        **totals(spark),
        **wire(),
        **leaves(),
        **pods,
    }
