"""Attempts as SparkApplications of kubeflow's Spark operator, `sparkoperator.k8s.io/v1beta2`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_operator.launchers.objects import Kind
from hudi_operator.launchers.seen import Verdict
from hudi_operator.manifests.spark_applications import KUBEFLOW, kubeflow_application

_TERMINAL = frozenset({"COMPLETED", "FAILED"})
_UNSEEN = "the Spark operator has not taken up its SparkApplication yet"


def _verdict(application: Mapping[str, Any]) -> Verdict:
    status = application.get("status") or {}
    state = status.get("applicationState") or {}
    name, said = str(state.get("state") or ""), str(state.get("errorMessage") or "")
    message = f"the SparkApplication is {name}{f': {said}' if said else ''}" if name else _UNSEEN
    return Verdict(name in _TERMINAL, message, status.get("terminationTime"))


SPARK_OPERATOR = Kind("SparkOperator", KUBEFLOW, "sparkapplications", kubeflow_application, _verdict)
