"""Settings of pods beside their sizes: those of the namespace's policy and those of the resource,
joined and checked against the policy.

Where both say something of one name the policy wins; lists are joined. Nothing of it can weaken a
pod: labels and annotations of Kubernetes' domains, variables that load code or change Spark, and
accounts and priorities that are not allowed are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hudi_operator.api.fields.pods import CaBundle, EnvVar, PodParts, PodPolicy
from hudi_operator.api.names import GROUP
from hudi_operator.api.parsing import FieldError
from hudi_operator.api.schema import to_document
from hudi_operator.manifests.jobs import CREDENTIAL_VARIABLES

ATTEMPT = f"{GROUP}/attempt"
"""Label of a driver and its executors: name of their attempt."""
CA_VOLUME, CA_FOLDER, CA_FILE = "ca-bundle", "/etc/hudi-ca", "ca.crt"
CA_VARIABLES = ("SSL_CERT_FILE", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
"""Where clients look for authorities: rustls and OpenSSL, those of AWS, Python's."""
_KEY = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_OTHERS = re.compile(
    r"(^|\.)(kubernetes\.io|k8s\.io|spark\.apache\.org|sparkoperator\.k8s\.io)$|^" + re.escape(GROUP) + "$"
)
_OF_SPARK = re.compile(r"^spark-|^(version)$")
_LOADS = re.compile(
    r"^(LD_|DYLD_|PYTHON|PYSPARK|SPARK_|JAVA_|JDK_|_JAVA|JVM|HADOOP_|KUBERNETES_|KUBECONFIG|HUDI_|PATH$|HOME$|TMPDIR$|BASH_ENV$|ENV$|IFS$|GLIBC_|MALLOC_)"
)


def joined(policy: PodParts, parts: PodParts) -> PodParts:
    """The settings of one pod."""
    names = {each.name for each in policy.env}
    return replace(
        parts,
        tolerations=(*policy.tolerations, *(each for each in parts.tolerations if each not in policy.tolerations)),
        node_selector={**parts.node_selector, **policy.node_selector},
        affinity=policy.affinity or parts.affinity,
        topology_spread_constraints=(*policy.topology_spread_constraints, *parts.topology_spread_constraints),
        priority_class_name=parts.priority_class_name or policy.priority_class_name,
        service_account_name=parts.service_account_name or policy.service_account_name,
        labels={**parts.labels, **policy.labels},
        annotations={**parts.annotations, **policy.annotations},
        env=(*policy.env, *(each for each in parts.env if each.name not in names)),
        ca_bundle=parts.ca_bundle or policy.ca_bundle,
        cpu_request=parts.cpu_request or policy.cpu_request,
        cpu_limit=parts.cpu_limit or policy.cpu_limit,
    )


def refused_parts(policy: PodPolicy, parts: PodParts, path: str) -> Iterator[FieldError]:
    """What a resource asks for that the policy of its namespace does not allow, each by name.
    `path` is that of the part."""
    allowed = (
        ("serviceAccountName", parts.service_account_name, policy.allowed_service_accounts, "allowedServiceAccounts"),
        ("priorityClassName", parts.priority_class_name, policy.allowed_priority_classes, "allowedPriorityClasses"),
    )
    for field, name, known, where in allowed:
        if name is not None and name not in known:
            said = f"those of this namespace are {', '.join(known)}" if known else "none is allowed in this namespace"
            yield FieldError(f"{path}.{field}", f"is {name!r}, and {said}; the operator's jobs.pods.{where} says which")
    for field, names in (
        ("labels", parts.labels),
        ("annotations", parts.annotations),
        ("nodeSelector", parts.node_selector),
    ):
        yield from _wrong_names(names, f"{path}.{field}", values=field != "annotations", free=field == "nodeSelector")
    for i, each in enumerate(parts.env):
        if (why := _wrong_variable(each)) is not None:
            yield FieldError(f"{path}.env[{i}].name", f"is {each.name!r}, {why}")


def _wrong_names(names: Mapping[str, str], path: str, *, values: bool, free: bool) -> Iterator[FieldError]:
    for key, value in names.items():
        domain, _, name = key.rpartition("/")
        if _KEY.fullmatch(key) is None:
            yield FieldError(f"{path}[{key}]", "is no name that Kubernetes takes")
        elif values and _VALUE.fullmatch(value) is None:
            yield FieldError(f"{path}[{key}]", f"is {value!r}, no value that Kubernetes takes for a label")
        elif not free and (_OTHERS.search(domain) is not None or (not domain and _OF_SPARK.search(name) is not None)):
            yield FieldError(
                f"{path}[{key}]", "is not for a manifest to set: Kubernetes, Spark and the operator use it; remove it"
            )


def _wrong_variable(variable: EnvVar) -> str | None:
    if variable.name in CREDENTIAL_VARIABLES:
        return "a credential: put it into the Secret of spec.storage.credentialsSecretRef"
    if variable.name in CA_VARIABLES:
        return "which caBundle sets; name the ConfigMap there"
    if _LOADS.match(variable.name) is not None:
        return "which may load code or change Spark; it is not for a manifest to set: remove it"
    return None


def dress(template: dict[str, Any], parts: PodParts, policy: PodPolicy, attempt: str) -> dict[str, Any]:
    """A pod template with these settings. What the operator sets itself stays."""
    metadata, pod = template["metadata"], template["spec"]
    metadata["labels"] = {**parts.labels, **metadata.get("labels", {})}
    annotations = {**parts.annotations, **metadata.get("annotations", {})}
    if annotations:
        metadata["annotations"] = annotations
    if parts.tolerations:
        pod["tolerations"] = [to_document(each) for each in parts.tolerations]
    if parts.node_selector:
        pod["nodeSelector"] = dict(parts.node_selector)
    if parts.affinity:
        pod["affinity"] = parts.affinity
    if parts.topology_spread_constraints:
        ours = {"labelSelector": {"matchLabels": {ATTEMPT: attempt}}}
        pod["topologySpreadConstraints"] = [{**ours, **each} for each in parts.topology_spread_constraints]
    if parts.priority_class_name:
        pod["priorityClassName"] = parts.priority_class_name
    main = pod["containers"][0]
    main["env"] = [*_variables(parts.env, {each["name"] for each in main["env"]}), *main["env"]]
    for number, volume in enumerate(policy.volumes):
        name = f"volume-{number}"
        pod["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": volume.claim}})
        main["volumeMounts"].append({"name": name, "mountPath": volume.path})
    if parts.ca_bundle is not None:
        _trust(pod, main, parts.ca_bundle)
    return template


def _variables(wanted: Iterable[EnvVar], taken: set[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in wanted:
        if each.name in taken:
            continue
        if each.secret_key_ref is not None:
            found.append({"name": each.name, "valueFrom": {"secretKeyRef": to_document(each.secret_key_ref)}})
        else:
            found.append({"name": each.name, "value": each.value})
    return found


def _trust(pod: dict[str, Any], main: dict[str, Any], bundle: CaBundle) -> None:
    source: dict[str, Any] = {"name": bundle.name, "items": [{"key": bundle.key, "path": CA_FILE}]}
    pod["volumes"].append({"name": CA_VOLUME, "configMap": source})
    main["volumeMounts"].append({"name": CA_VOLUME, "mountPath": CA_FOLDER, "readOnly": True})
    main["env"] += [{"name": name, "value": f"{CA_FOLDER}/{CA_FILE}"} for name in CA_VARIABLES]
