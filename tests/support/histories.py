"""Random histories of a state machine, as Hypothesis draws and shortens them."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run_histories(machine: type[RuleBasedStateMachine], count: int, steps: int) -> None:
    """Run `count` of them, of `steps` steps at the most. A step of a table takes long, which is no
    fault."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=count, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )  # fmt: skip
