"""Every property that this Spark knows, against what a manifest may set: no name of a class, a
program, a path or an address among them."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from hudi_operator.manifests.spark_conf import refused

pytestmark = pytest.mark.spark
HOLDERS = ("internal.config.package$", "internal.config.Python$", "internal.config.Network$", "internal.config.UI$",
           "internal.config.Status$", "internal.config.Streaming$", "internal.config.Kryo$", "internal.config.Deploy$",
           "deploy.k8s.Config$", "sql.internal.SQLConf$", "sql.internal.StaticSQLConf$", "sql.hive.HiveUtils$")  # fmt: skip
"""Objects whose fields are entries of Spark's configuration, by their names below
org.apache.spark."""
RISKY = re.compile(
    r"[cC]lass|[jJ]ars?\b|[pP]ath|[dD]ir\b|[dD]irectory|module|[cC]ommand|[pP]rovider|[lL]istener(?!bus)|[pP]lugin|[uU]r[li]\b|[lL]ocation"
    r"|codec|\.impl\b|[sS]erializer|redact|[cC]atalog|[aA]rtifact|[rR]emote|[pP]olicy|[mM]apper|[pP]rofiler|topology|[fF]actory|python$|[hH]ost\b"
)
LOOKED_AT = {
    "spark.sql.adaptive.optimizer.excludedRules": "names of rules that are left out",
    "spark.sql.execution.arrow.compression.codec": "one of a few words",
    "spark.sql.files.ignoreInvalidPartitionPaths": "yes or no",
    "spark.sql.files.ignoredPathSegmentRegex": "which files are none",
    "spark.sql.legacy.allowNonEmptyLocationInCTAS": "yes or no; no table is created",
    "spark.sql.legacy.timeParserPolicy": "one of a few words",
    "spark.sql.mapKeyDedupPolicy": "one of a few words",
    "spark.sql.optimizer.serializer.nestedSchemaPruning.enabled": "yes or no",
    "spark.sql.orc.compression.codec": "one of a few words",
    "spark.sql.parquet.compression.codec": "one of a few words",
    "spark.sql.storeAssignmentPolicy": "one of a few words",
}


@pytest.fixture(scope="module")
def known(spark: SparkSession) -> set[str]:
    """The names of all of Spark's properties."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for holder in HOLDERS:
        jvm.java.lang.Class.forName(f"org.apache.spark.{holder}", True, loader)
    entries = jvm.java.lang.Class.forName("org.apache.spark.internal.config.ConfigEntry$", True, loader)
    field = entries.getDeclaredField("knownConfigs")
    field.setAccessible(True)
    return set(field.get(entries.getField("MODULE$").get(None)).keySet().toArray())


def test_no_property_that_a_manifest_may_set_names_code_or_a_place(known: set[str]) -> None:
    assert len(known) > 1000
    risky = {key for key in known if RISKY.search(key) and not refused({key: "1"})}
    assert risky - LOOKED_AT.keys() == set(), "look at them: refuse them, or say why not"


def test_much_of_what_tunes_a_query_is_a_manifests_own(known: set[str]) -> None:
    assert sum(1 for key in known if not refused({key: "1"})) > 300
    assert not [
        key for key in known if key.startswith("spark.sql.adaptive.") and "lass" not in key and refused({key: "1"})
    ]
