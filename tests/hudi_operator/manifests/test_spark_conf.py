"""Which properties of a manifest reach Spark, and how a pod's memory is shared."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_operator.manifests.quantities import bytes_of
from hudi_operator.manifests.spark_conf import SPARK_VERSION, heap_and_rest, refused
from tests.support.scale import scaled

FORBIDDEN = [
    "spark.kubernetes.", "spark.jars", "spark.files", "spark.archives", "spark.plugins", "spark.driver.extra", "spark.executor.extra",
    "spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions", "spark.hadoop.", "spark.hive.", "spark.yarn.",
    "spark.executorEnv.", "spark.authenticate", "spark.ssl.", "spark.network.crypto.", "spark.io.", "spark.ui.", "spark.acls.",
    "spark.eventLog.", "spark.history.", "spark.master", "spark.submit.", "spark.pyspark.", "spark.python.daemon",
    "spark.python.worker.module", "spark.sql.extensions", "spark.sql.catalog.", "spark.sql.hive.", "spark.sql.warehouse",
    "spark.sql.streaming.", "spark.sql.execution.pyspark.", "spark.sql.redaction.", "spark.sql.artifact.", "spark.sql.maven.",
    "spark.shuffle.manager", "spark.shuffle.service", "spark.shuffle.sort.io.", "spark.storage.replication.",
    "spark.storage.decommission.", "spark.scheduler.allocation.", "spark.dynamicAllocation.", "spark.connect.", "spark.app.",
]  # fmt: skip


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.shuffle.partitions",
        "spark.sql.adaptive.enabled",
        "spark.default.parallelism",
        "spark.task.maxFailures",
        "spark.network.timeout",
        "spark.shuffle.compress",
        "spark.speculation",
    ],
)
def test_tuning_is_a_manifests_own(key: str) -> None:
    assert refused({key: "1"}) == ()


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.shuffle.partitions\n",
        "spark.master",
        "spark.jars",
        "spark.plugins",
        "spark.driver.extraJavaOptions",
        "spark.executor.extraClassPath",
        "spark.executor.instances",
        "spark.executorEnv.LD_PRELOAD",
        "spark.kubernetes.driver.volumes.hostPath.x.mount.path",
        "spark.authenticate",
        "spark.network.crypto.enabled",
        "spark.hadoop.fs.s3a.impl",
        "spark.extraListeners",
        "spark.sql.extensions",
        "spark.sql.catalog.x",
        "spark.sql.queryExecutionListeners",
        "spark.sql.streaming.streamingQueryListeners",
        "spark.sql.cache.serializerClass",
        "spark.shuffle.manager",
        "spark.shuffle.sort.io.plugin.class",
        "spark.python.daemon.module",
        "spark.python.worker.module",
        "spark.sql.execution.pyspark.python",
        "spark.sql.cache.serializer",
        "spark.sql.sources.default",
        "spark.sql.catalogImplementation",
        "spark.sql.maven.additionalRemoteRepositories",
        "spark.sql.redaction.string.regex",
        "spark.scheduler.allocation.file",
        "spark.storage.replication.policy",
        "spark.storage.decommission.fallbackStorage.path",
        "sparkling",
        "",
    ],
)
def test_what_loads_code_or_is_the_operators_is_refused_by_name(key: str) -> None:
    (error,) = refused({"spark.sql.shuffle.partitions": "4", key: "1"})
    assert error.path == f"spec.spark.conf[{key}]"


@settings(max_examples=scaled(300, quick=80))
@given(st.sampled_from(FORBIDDEN), st.text(alphabet="abcXYZ.-_0 \n", max_size=12), st.text(max_size=8))
def test_nothing_below_a_forbidden_name_is_taken(prefix: str, rest: str, value: str) -> None:
    assert refused({prefix + rest: value})


@settings(max_examples=scaled(300, quick=80))
@given(
    st.text(max_size=12),
    st.sampled_from(["env:AWS_SECRET_ACCESS_KEY", "system:user.name", "spark.x", ""]),
    st.text(max_size=12),
)
def test_a_value_that_spark_would_replace_is_refused(before: str, name: str, after: str) -> None:
    """An error that shows the value would tell a credential to whoever reads the status."""
    (error,) = refused({"spark.sql.shuffle.partitions": f"{before}${{{name}}}{after}"})
    assert error.path == "spec.spark.conf[spark.sql.shuffle.partitions]"
    assert "write the value itself" in str(error)


@pytest.mark.parametrize("memory", ["1Gi", "2Gi", "7Gi", "64Gi"])
def test_heap_and_rest_are_the_memory_of_the_pod(memory: str) -> None:
    heap, rest = (int(text.removesuffix("m")) for text in heap_and_rest(memory))
    assert heap + rest == bytes_of(memory) >> 20
    assert heap <= rest


def test_a_heap_is_never_too_small_for_spark() -> None:
    assert heap_and_rest("256Mi") == ("512m", "384m")


def test_applications_name_the_spark_that_the_image_holds() -> None:
    assert version("pyspark") == SPARK_VERSION
