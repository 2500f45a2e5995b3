"""The operator's own words about pods of jobs: a JSON document, of all namespaces and of some."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hudi_operator.api.fields.pods import PodPolicies, PodPolicy
from hudi_operator.api.parsing import FieldError, parse
from hudi_operator.errors import InvalidSpecError
from hudi_operator.manifests.pod_parts import CA_FOLDER
from hudi_operator.manifests.pods import SPEC_FOLDER

_TAKEN = ("/tmp", "/etc", SPEC_FOLDER, CA_FOLDER, "/dev", "/proc", "/opt", "/usr", "/bin", "/lib")  # noqa: S108 - folders of pods
_FIELDS = ("pods", "podsByNamespace", "maxAttempts")


def read_policies(text: str) -> PodPolicies:
    """`{"pods": {…}, "podsByNamespace": {"NAME": {…}}, "maxAttempts": N}`; what a namespace says
    replaces what is said of all, field by field. Raises InvalidSpecError that names every wrong
    field."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidSpecError(f"jobs: the settings of pods are no JSON: {error}") from error
    if not isinstance(document, Mapping) or set(document) - set(_FIELDS):
        raise InvalidSpecError(f"jobs: takes an object of {', '.join(_FIELDS)}")
    errors: list[FieldError] = []

    def policy(raw: Any, path: str) -> PodPolicy:
        found, wrong = parse(PodPolicy, raw, path)
        errors.extend(wrong)
        taken = [volume.path for volume in found.volumes if volume.path in _TAKEN] if found is not None else []
        errors.extend(
            FieldError(f"{path}.volumes", f"{each} is a folder of the pod's own; mount it elsewhere") for each in taken
        )
        return found or PodPolicy()

    common, spaces = document.get("pods") or {}, document.get("podsByNamespace") or {}
    if not isinstance(common, Mapping) or not isinstance(spaces, Mapping):
        raise InvalidSpecError("jobs.pods and jobs.podsByNamespace are objects")
    default = policy(common, "jobs.pods")
    namespaces = {
        str(name): policy({**common, **said} if isinstance(said, Mapping) else said, f"jobs.podsByNamespace[{name}]")
        for name, said in spaces.items()
    }
    most = document.get("maxAttempts")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        errors.append(FieldError("jobs.maxAttempts", f"is {most!r}, must be a whole number from 1"))
    if errors:
        raise InvalidSpecError("; ".join(map(str, errors)))
    return PodPolicies(default, namespaces, most)
