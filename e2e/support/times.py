"""From `kubectl apply` to the first commit, and where the time went: read from what Kubernetes and
the job's log say.

Kubernetes tells whole seconds, so a phase may be off by one; the container's log is exact to the
millisecond.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from e2e.support.kube import Document, Kube
from e2e.support.operator import NAMESPACE

PHASES = ("operator", "schedule", "image", "Python", "JVM", "Spark", "work")
"""What each ended with: the pod made, placed, its container started; the job begun; JVM and Spark
there; container ended. What is left is `rest`: until a client sees it."""
_rows: list[tuple[str, dict[str, float], float]] = []
_told: list[str] = []


@dataclass
class Stopwatch:
    """Runs from a `kubectl apply` until what it was about is seen."""

    what: str
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: datetime | None = None

    def seen(self) -> None:
        """It is there."""
        self.ended = datetime.now(UTC)

    def note(self, kube: Kube, pod: Document) -> float:
        """Note the phases of the pod that did it, once it has ended; the seconds until it was
        seen."""
        ended = self.ended or datetime.now(UTC)
        marks = _marks(kube, pod)
        phases, before = {}, self.began
        for name in PHASES:
            if name in marks:
                phases[name] = max(0.0, (min(marks[name], ended) - before).total_seconds())
                before = max(before, min(marks[name], ended))
        phases["rest"] = max(0.0, (ended - before).total_seconds())
        total = (ended - self.began).total_seconds()
        _rows.append((self.what, phases, total))
        return total


def tell(line: str) -> None:
    """Another figure, in words."""
    _told.append(line)


def table() -> list[str]:
    """Lines for a person; none if nothing was measured."""
    if not _rows:
        return _told
    head = f"{'seconds from kubectl apply':<44}{'all':>8}" + "".join(f"{name:>10}" for name in (*PHASES, "rest"))
    lines = [head]
    for what, phases, total in _rows:
        cells = "".join(f"{phases[name]:>10.1f}" if name in phases else f"{'-':>10}" for name in (*PHASES, "rest"))
        lines.append(f"{what:<44}{total:>8.1f}{cells}")
    return [*lines, *_told]


def _marks(kube: Kube, pod: Document) -> dict[str, datetime]:
    """When each phase ended."""
    status = pod["status"]
    found = {"operator": _time(pod["metadata"]["creationTimestamp"])}
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled":
            found["schedule"] = _time(condition["lastTransitionTime"])
    ended = status["containerStatuses"][0]["state"].get("terminated", {})
    if "startedAt" in ended:
        found["image"] = _time(ended["startedAt"])
        found["work"] = _time(ended["finishedAt"])
    found.update(_said(kube, pod["metadata"]["name"]))
    return found


def _said(kube: Kube, pod: str) -> dict[str, datetime]:
    """What the job says of itself: its first line comes when Python has imported everything."""
    found: dict[str, datetime] = {}
    starting = None
    for line in kube.run("logs", pod, "-n", NAMESPACE, "--timestamps").stdout.splitlines():
        moment, _, text = line.partition(" ")
        try:
            message = str(json.loads(text)["message"])
        except (ValueError, KeyError, TypeError):
            continue
        at = datetime.fromisoformat(moment)
        found.setdefault("Python", at)
        if message == "starting Spark":
            starting = at
        if starting and (told := re.match(r"Spark runs; its JVM was there after (\S+) s", message)):
            found["Spark"] = at
            found["JVM"] = starting + timedelta(seconds=float(told[1]))
    return found


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
