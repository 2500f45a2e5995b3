"""Attempts as SparkApplications of Apache's Spark operator, `spark.apache.org/v1`.

It ends in `ResourceReleased` or `TerminatedWithoutReleaseResources`, which say neither success nor
failure: that stands in the history of its states, a map whose keys are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_operator.launchers.objects import Kind
from hudi_operator.launchers.seen import Verdict
from hudi_operator.manifests.spark_applications import APACHE, apache_application

_TERMINAL = frozenset({"ResourceReleased", "TerminatedWithoutReleaseResources"})
_DECISIVE = frozenset(
    {
        "Succeeded",
        "Failed",
        "DriverEvicted",
        "SchedulingFailure",
        "DriverStartTimedOut",
        "DriverReadyTimedOut",
        "ExecutorsStartTimedOut",
    }
)
_UNSEEN = "the Spark operator has not taken up its SparkApplication yet"


def _verdict(application: Mapping[str, Any]) -> Verdict:
    status = application.get("status") or {}
    current = status.get("currentState") or {}
    name = str(current.get("currentStateSummary") or "")
    if name not in _TERMINAL:
        return Verdict(message=f"the SparkApplication is {_message(current)}" if name else _UNSEEN)
    history = sorted((status.get("stateTransitionHistory") or {}).items(), key=lambda item: int(item[0]), reverse=True)
    last = next((state for _, state in history if state.get("currentStateSummary") in _DECISIVE), current)
    return Verdict(
        ended=True,
        message=f"the SparkApplication is {_message(last)}",
        finished=_seconds(last.get("lastTransitionTime")),
    )


def _message(state: Mapping[str, Any]) -> str:
    said = state.get("message")
    return f"{state['currentStateSummary']}{f': {said}' if said else ''}"


def _seconds(moment: str | None) -> str | None:
    """Its times have nine digits after the point; a status has none."""
    return f"{moment.partition('.')[0].rstrip('Z')}Z" if moment else None


APACHE_SPARK_OPERATOR = Kind("ApacheSparkOperator", APACHE, "sparkapplications", apache_application, _verdict)
