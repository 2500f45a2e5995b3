"""Simulated processes live, wait and die as processes do."""

from __future__ import annotations

from tests.simulation.scheduler import Killed, Scheduler, SimProcess


def test_a_process_that_dies_once_more_while_its_tasks_end_takes_all_of_them_along() -> None:
    """What a task does at its end may meet a fault that ends the process."""
    scheduler = Scheduler()
    process = SimProcess(scheduler, "writer")
    ended: list[str] = []

    def waits(name: str) -> None:
        try:
            scheduler.sleep(10.0)
        finally:
            ended.append(name)
            process.kill()

    def dies() -> None:
        scheduler.sleep(1.0)
        try:
            process.kill()
        finally:
            ended.append("the first")

    tasks = [process.start(dies), *(process.start(lambda name=name: waits(name)) for name in ("second", "third"))]  # type: ignore[misc]
    scheduler.run()
    assert ended == ["second", "third", "the first"]
    assert all(task.is_over for task in tasks)
    assert [type(task.error) for task in tasks] == [Killed] * 3
