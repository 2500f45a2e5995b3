"""What came of many runs: counts of what was done and met, and the failures."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.run import Outcome

SHOWN = 3


@dataclass
class Batch:
    """Runs, one after the other. `digest`: of all of them."""

    operations: int = 0
    runs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    _begun: float = field(default_factory=time.process_time)

    def take(self, outcome: Outcome) -> None:
        """One more."""
        self.runs += 1
        self.operations += outcome.operations
        self.counts += outcome.counts
        self.outcomes += outcome.outcomes
        self.digests.append(outcome.digest)
        if outcome.anomalies:
            script = outcome.script
            shown = "\n    ".join(outcome.anomalies[:SHOWN])
            self.failures.append(
                f"seed {script.seed}: {len(outcome.anomalies)} anomalies, {script.table} at {script.base}, {script.order} "
                f"pages of {script.page}\n    {shown}"
            )

    def told(self) -> str:
        """For people."""
        seconds = time.process_time() - self._begun
        rate = self.operations / max(seconds, 1e-9)
        return "\n".join(
            [
                f"{self.runs} runs, {self.operations} operations, {len(self.failures)} runs failed; {rate:.0f} operations a second of processor time",
                str(dict(sorted(self.outcomes.items()))),
                str(dict(sorted(self.counts.items()))),
            ]
        )

    def to_json(self) -> str:
        """For the tests."""
        found: dict[str, Any] = {
            "runs": self.runs,
            "operations": self.operations,
            "seconds": time.process_time() - self._begun,
            "counts": self.counts,
            "outcomes": self.outcomes,
            "failures": self.failures,
            "digest": hashlib.sha256("".join(self.digests).encode()).hexdigest(),
        }
        return json.dumps(found)
