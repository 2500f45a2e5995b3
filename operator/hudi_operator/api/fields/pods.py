"""What may be said of the pods of jobs: by a `HudiTable` of its driver and executors, and by
whoever runs the operator of a namespace.

There is no pod template: what would weaken a pod (privileges, host paths, other containers) has no
field.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from hudi_operator.api.fields.patterns import CPU, OBJECT_NAME, QUANTITY
from hudi_operator.api.schema import Rule, prop


class TolerationOperator(StrEnum):
    """How a toleration's key is compared."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """Effects of taints."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that a pod tolerates, as in a pod."""

    key: str | None = prop("key of the taint; absent: any, with operator Exists", None, max_length=316)
    operator: TolerationOperator | None = prop("absent: Equal", None)
    value: str | None = prop("value of the taint", None, max_length=63)
    effect: TaintEffect | None = prop("absent: all effects", None)
    toleration_seconds: int | None = prop("how long, of effect NoExecute; absent: for ever", None, minimum=0)


@dataclass(frozen=True, slots=True)
class SecretKey:
    """A key of a Secret of the same namespace."""

    name: str = prop("name of the Secret", pattern=OBJECT_NAME, max_length=253)
    key: str = prop("one of its keys", pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)


@dataclass(frozen=True, slots=True)
class EnvVar:
    """An environment variable: a value, or a key of a Secret."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.value) != has(self.secretKeyRef)",
            "a variable has either a value or a secretKeyRef",
            "",
            lambda v: (v.value is None) != (v.secret_key_ref is None),
        ),
    )

    name: str = prop("name of the variable", pattern="^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)
    value: str | None = prop("its value; no secret", None, max_length=4096)
    secret_key_ref: SecretKey | None = prop("the key of a Secret that holds it", None)


@dataclass(frozen=True, slots=True)
class CaBundle:
    """Authorities that the job's clients trust instead of those of the image: a key of a ConfigMap
    of the same namespace."""

    name: str = prop("name of the ConfigMap", pattern=OBJECT_NAME, max_length=253)
    key: str = prop("the key that holds the certificates, PEM", "ca.crt", pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodParts:
    """What a resource may say of its pods, in the fields of a pod."""

    tolerations: tuple[Toleration, ...] = prop("taints that are tolerated", (), max_items=32)
    node_selector: dict[str, str] = prop("labels of the nodes", dict, max_items=32, item_max_length=63)
    affinity: dict[str, Any] | None = prop("affinity, as in a pod", None)
    topology_spread_constraints: tuple[dict[str, Any], ...] = prop(
        "topologySpreadConstraints, as in a pod; without a labelSelector of the pods of the same attempt",
        (),
        max_items=8,
    )
    priority_class_name: str | None = prop(
        "PriorityClass, of those that the operator allows", None, pattern=OBJECT_NAME, max_length=253
    )
    service_account_name: str | None = prop(
        "account, of those that the operator allows", None, pattern=OBJECT_NAME, max_length=253
    )
    labels: dict[str, str] = prop("more labels", dict, max_items=32, item_max_length=63)
    annotations: dict[str, str] = prop("more annotations", dict, max_items=32, item_max_length=4096)
    env: tuple[EnvVar, ...] = prop("more environment variables", (), max_items=64, list_key="name")
    ca_bundle: CaBundle | None = prop("authorities to trust", None)
    cpu_request: str | None = prop(
        "CPU that is asked for, such as 500m; absent: cores", None, pattern=CPU, max_length=16
    )
    cpu_limit: str | None = prop("CPU at most; absent: no limit", None, pattern=CPU, max_length=16)


@dataclass(frozen=True, slots=True)
class LightSize:
    """A pod for work that reads no rows."""

    cpu: str = prop("CPU that is asked for", "100m", pattern=CPU, max_length=16)
    memory: str = prop("memory, asked for and at most", "512Mi", pattern=QUANTITY, max_length=16)


@dataclass(frozen=True, slots=True)
class Volume:
    """A claim of each namespace that every job mounts: `file:` locations below `path` may be
    used."""

    claim: str = prop("name of the PersistentVolumeClaim", pattern=OBJECT_NAME, max_length=253)
    path: str = prop("where it is mounted, absolute", pattern=r"^(/[-._a-zA-Z0-9]+)+$", max_length=512)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPolicy(PodParts):
    """What whoever runs the operator says of the pods of a namespace, and what its resources may
    ask for."""

    memory: str | None = prop(
        "memory of a driver or executor whose resource says none, such as 2Gi", None, pattern=QUANTITY, max_length=16
    )
    light: LightSize | None = prop("size of pods for work that reads no rows", None)
    volumes: tuple[Volume, ...] = prop("claims that every job mounts", (), max_items=8)
    allowed_service_accounts: tuple[str, ...] = prop("accounts that a resource may name", (), max_items=64)
    allowed_priority_classes: tuple[str, ...] = prop("PriorityClasses that a resource may name", (), max_items=64)
    max_attempts: int | None = prop("attempts at work at once in the namespace; absent: any number", None, minimum=1)


@dataclass(frozen=True, slots=True)
class PodPolicies:
    """Of all namespaces, and of one (`of`), whose own words win."""

    default: PodPolicy
    namespaces: dict[str, PodPolicy]
    max_attempts: int | None = None

    def of(self, namespace: str) -> PodPolicy:
        """The policy of a namespace."""
        return self.namespaces.get(namespace, self.default)
