"""What a table's manifest asks for that no job of a cluster can be given, found before anything is
observed or started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from hudi_operator.api.fields.pods import PodParts, PodPolicy
from hudi_operator.api.fields.spark import PodSize
from hudi_operator.api.locations import path_of, scheme_of
from hudi_operator.api.parsing import FieldError
from hudi_operator.api.schema import camel
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.pod_parts import refused_parts
from hudi_operator.manifests.spark_conf import refused

_PARTS = tuple(PodParts.__dataclass_fields__)


def refused_in_cluster(spec: HudiTableSpec, policy: PodPolicy) -> tuple[FieldError, ...]:
    """Places that pods do not share, properties of Spark, and settings of pods, each by name."""
    found = [*refused_places(spec, policy), *refused(spec.spark.conf)]
    for role, size in (("driver", spec.spark.driver), ("executor", spec.spark.executor)):
        found += refused_parts(policy, size, f"spec.spark.{role}")
    return tuple(found)


def refused_places(spec: HudiTableSpec, policy: PodPolicy) -> Iterator[FieldError]:
    """Locations that mean something else in each pod, unless a volume of the operator's policy
    holds them."""
    places = [("spec.location", spec.location)]
    for i, each in enumerate(spec.ingest):
        places.append((f"spec.ingest[{i}].source.path", each.source.path or ""))
        hudi = each.source.hudi
        places.append((f"spec.ingest[{i}].source.hudi.location", hudi.location if hudi is not None else ""))
        for k, table in enumerate(each.source.sql.tables if each.source.sql is not None else ()):
            places.append((f"spec.ingest[{i}].source.sql.tables[{k}].location", table.location))
        for of, stream in (("kafka", each.source.kafka), ("kinesis", each.source.kinesis)):
            files = {"avro": stream.avro, "protobuf": stream.protobuf} if stream is not None else {}
            for name, codec in files.items():
                path = f"spec.ingest[{i}].source.{of}.{name}.schemaFile"
                places.append((path, codec.schema_file or "" if codec is not None else ""))
    for path, location in places:
        scheme = scheme_of(location)
        if scheme == "memory":
            yield FieldError(
                path, f"is {location!r}, the memory of one process, which no pod shares; use an object store"
            )
        elif scheme == "file" and not _held(location, policy):
            known = ", ".join(each.path for each in policy.volumes)
            volumes = (
                f"below a volume of this namespace: {known}"
                if known
                else "below a volume, of which this namespace has none"
            )
            yield FieldError(
                path,
                f"is {location!r}, which each pod has for itself: use an object store, or a folder {volumes} (jobs.pods.volumes)",
            )


def _held(location: str, policy: PodPolicy) -> bool:
    folder = PurePosixPath(path_of(location))
    return any(folder.is_relative_to(each.path) for each in policy.volumes)


def refused_on_machine(spec: HudiTableSpec) -> tuple[FieldError, ...]:
    """Settings of pods, of which there are none beside `hudictl local`; variables with a value its
    processes get."""
    why = "is of pods, and hudictl local runs processes; remove it here"
    refusals = [
        FieldError(f"spec.spark.{role}.{camel(name)}", why)
        for role, size in (("driver", spec.spark.driver), ("executor", spec.spark.executor))
        for name in _PARTS
        if getattr(size, name) != getattr(PodSize(), name) and (role, name) != ("driver", "env")
    ]
    refusals += [
        FieldError(
            f"spec.spark.driver.env[{i}].secretKeyRef",
            "hudictl local reads the Secret of spec.storage.credentialsSecretRef alone",
        )
        for i, each in enumerate(spec.spark.driver.env)
        if each.secret_key_ref is not None
    ]
    return tuple(refusals)
