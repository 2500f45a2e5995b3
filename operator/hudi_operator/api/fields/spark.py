"""`spark` of a `HudiTable`: what runs its jobs, and what their pods are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.patterns import QUANTITY
from hudi_operator.api.fields.pods import LightSize, PodParts
from hudi_operator.api.schema import Rule, prop


class Launcher(StrEnum):
    """What runs the jobs."""

    AUTO = "Auto"
    SPARK_OPERATOR = "SparkOperator"
    APACHE_SPARK_OPERATOR = "ApacheSparkOperator"
    JOB = "Job"
    LOCAL = "Local"


@dataclass(frozen=True, slots=True)
class PodSize(PodParts):
    """Size of a driver or of each executor, and the other settings of its pod."""

    instances: int = prop("how many; a driver is one", 1, minimum=0, maximum=10_000)
    cores: int = prop("cores of each", 1, minimum=1, maximum=1_000)
    memory: str | None = prop(
        "memory of each, asked for and at most, such as 2Gi; absent: what the operator says of the namespace, else 2Gi",
        None,
        pattern=QUANTITY,
        max_length=16,
    )


@dataclass(frozen=True, slots=True)
class SparkSpec:
    """How jobs run on Spark."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.launcher != 'Local'",
            "launcher Local runs processes beside hudictl local; in a cluster use Auto or Job",
            "launcher",
            None,
        ),
    )

    launcher: Launcher = prop("what runs the jobs; Auto takes what the cluster has", Launcher.AUTO)
    driver: PodSize = prop("the driver", PodSize)
    executor: PodSize = prop("the executors", PodSize)
    light: LightSize | None = prop(
        "size of pods for work that reads no rows, such as cleaning; absent: the operator's", None
    )
    conf: dict[str, str] = prop("Spark properties", dict, max_items=256, item_max_length=4096)
