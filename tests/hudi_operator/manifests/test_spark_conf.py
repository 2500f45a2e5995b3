"""Which properties of a manifest reach Spark, and how a pod's memory is shared."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from hudi_operator.api.table import PodSize
from hudi_operator.manifests.quantities import bytes_of
from hudi_operator.manifests.spark_conf import SPARK_VERSION, memory_of, refused


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
        "sparkling",
        "",
    ],
)
def test_what_loads_code_or_is_the_operators_is_refused_by_name(key: str) -> None:
    (error,) = refused({"spark.sql.shuffle.partitions": "4", key: "1"})
    assert error.path == f"spec.spark.conf[{key}]"


@pytest.mark.parametrize("memory", ["1Gi", "2Gi", "7Gi", "64Gi"])
def test_heap_and_rest_are_the_memory_of_the_pod(memory: str) -> None:
    heap, rest = (int(text.removesuffix("m")) for text in memory_of(PodSize(memory=memory)))
    assert heap + rest == bytes_of(memory) >> 20
    assert heap <= rest


def test_a_heap_is_never_too_small_for_spark() -> None:
    assert memory_of(PodSize(memory="256Mi")) == ("512m", "384m")


def test_applications_name_the_spark_that_the_image_holds() -> None:
    assert version("pyspark") == SPARK_VERSION
