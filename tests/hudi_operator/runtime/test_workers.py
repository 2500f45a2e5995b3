"""Workers survive whatever a look raises, and a look that hangs costs no other resource its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from hudi_operator.api.resources import Key
from hudi_operator.launchers.local import LocalLauncher
from hudi_operator.plan.effects import RequeueAfter
from hudi_operator.plan.runs import RetryPolicy
from hudi_operator.runtime import workers as module
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.folder import FolderCluster
from hudi_operator.runtime.operator import Operator
from hudi_operator.runtime.queue import WorkQueue
from hudi_operator.runtime.reconcile import Reconciler
from hudi_operator.runtime.workers import Workers
from hudi_table.errors import AccessDeniedError, HudiError
from hudi_table.table.clock import SystemClock
from tests.support.kubelet import eventually
from tests.support.manifests import manifest, spec

SECRET = "the-password"


class PanicError(BaseException):
    """As a panic of a library below: no Exception."""


class Poisoned(Reconciler):
    """Raises what it was given for a resource."""

    errors: dict[str, BaseException]
    looked: list[str]

    def reconcile(self, key: Key) -> RequeueAfter | None:
        self.looked.append(key.name)
        if key.name in self.errors:
            raise self.errors[key.name]
        return super().reconcile(key)


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    clock = SystemClock()
    cluster = FolderCluster(tmp_path / "state", clock, lambda key, event: None)
    cluster.acquire()
    reconciler = Poisoned(cluster, LocalLauncher(tmp_path / "attempts"), clock)
    reconciler.errors, reconciler.looked = {}, []
    queue = WorkQueue(clock.boot_seconds, RetryPolicy(backoff_first_seconds=0.05, backoff_max_seconds=0.2))
    found = Operator(cast("ApiCluster", cluster), reconciler, queue, count=2)
    queue.group = found.group
    yield found
    found.stop(10)
    cluster.release()


def poisoned(operator: Operator) -> Poisoned:
    assert isinstance(operator.reconciler, Poisoned)
    return operator.reconciler


def made(operator: Operator, tmp_path: Path, name: str, error: BaseException | None = None) -> Key:
    if error is not None:
        poisoned(operator).errors[name] = error
    document = manifest(name, **spec(location=f"file://{tmp_path}/{name}", ingest=[]))
    key = cast("Any", operator.cluster).apply(document)
    assert isinstance(key, Key)
    operator.queue.add(key)
    return key


def condition(operator: Operator, key: Key, kind: str) -> tuple[str, str, str]:
    document = operator.cluster.get(key) or {}
    told = [each for each in document.get("status", {}).get("conditions", ()) if each["type"] == kind]
    return (told[0]["status"], told[0]["reason"], told[0]["message"]) if told else ("", "", "")


@pytest.mark.parametrize(
    "error",
    [PanicError(SECRET), ValueError(SECRET), MemoryError(), RecursionError(), GeneratorExit(), KeyError("x")],
    ids=lambda error: type(error).__name__,
)
def test_a_worker_survives_whatever_a_look_raises_and_the_resource_says_so(
    operator: Operator, tmp_path: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    bad = [made(operator, tmp_path, f"bad-{n}", error) for n in range(3)]
    operator.start()
    eventually(lambda: poisoned(operator).looked.count("bad-0") > 2, "it is not tried again")
    good = made(operator, tmp_path, "good")
    eventually(lambda: condition(operator, good, "Ready")[1] == "NoTable", "nobody looks at another tenant's table")
    assert operator.workers.working() == 2
    for key in bad:
        status, reason, message = condition(operator, key, "Ready")
        assert (status, reason) == ("False", "Invariant")
        assert type(error).__name__ in message
        assert condition(operator, key, "Stalled")[0] == "True"
    assert "Traceback" in caplog.text
    assert SECRET not in caplog.text + str([operator.cluster.get(key) for key in bad])


def test_what_is_refused_is_a_condition_and_goes_when_it_is_mended(operator: Operator, tmp_path: Path) -> None:
    bad = made(operator, tmp_path, "bad", AccessDeniedError("the account may not get secrets"))
    operator.start()
    eventually(lambda: condition(operator, bad, "Ready")[1] == "AccessDenied", "it is not told")
    del poisoned(operator).errors["bad"]
    eventually(lambda: condition(operator, bad, "Ready")[1] == "NoTable", "it is not looked at again")
    assert condition(operator, bad, "Stalled") == ("", "", "")


def test_a_condition_that_cannot_be_written_ends_no_worker(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(key: Key, problem: object, wait: float) -> None:
        raise HudiError("refused")

    monkeypatch.setattr(operator.reconciler, "unlooked", refuse)
    made(operator, tmp_path, "bad", PanicError())
    operator.start()
    eventually(lambda: poisoned(operator).looked.count("bad") > 2, "it is not tried again")
    assert operator.workers.working() == 2


@pytest.mark.parametrize("asked", [SystemExit(1), KeyboardInterrupt()], ids=["SystemExit", "KeyboardInterrupt"])
def test_an_exit_ends_the_process_and_no_worker_in_silence(
    operator: Operator, tmp_path: Path, asked: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    made(operator, tmp_path, "bad", asked)
    operator.start()
    assert operator.ending.wait(10)
    assert type(asked).__name__ in caplog.text


def test_looks_that_hang_are_stood_in_for_and_cost_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEND_SECONDS", 0.01)
    hanging, looked = threading.Event(), []
    clock = SystemClock().boot_seconds
    queue = WorkQueue(clock)

    def look(key: Key) -> None:
        if key.namespace == "hangs":
            hanging.wait(30)
        looked.append(key.name)
        queue.done(key, None)

    workers = Workers(queue, look, 2, threading.Event(), overdue_seconds=0.05)
    for n in range(5):
        queue.add(Key("HudiTable", "hangs", str(n)))
    workers.start()
    queue.add(Key("HudiTable", "good", "one"), 0.1)
    eventually(lambda: looked == ["one"], "nobody looks at the others")
    eventually(lambda: workers.working() == 2, "nobody stands in")
    hanging.set()
    eventually(lambda: len(looked) == 6, "what hung does not end")
    eventually(lambda: workers.working() <= 3, "those who stood in go on for ever")
    assert workers.stop(10)


def test_a_namespace_whose_stores_do_not_answer_leaves_workers_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEND_SECONDS", 0.01)
    hanging, looked = threading.Event(), []
    queue = WorkQueue(SystemClock().boot_seconds, share=3)

    def look(key: Key) -> None:
        if key.namespace == "silent":
            hanging.wait(30)
        looked.append(key.namespace)
        queue.done(key, None)

    workers = Workers(queue, look, 2, threading.Event(), overdue_seconds=0.02)
    for n in range(100):
        queue.add(Key("HudiTable", "silent", str(n)))
    workers.start()
    for n in range(10):
        queue.add(Key("HudiTable", f"good-{n}", "t"), 0.1)
    eventually(lambda: len(looked) == 10, "nobody looks at the others")
    assert len(workers.looks()) == 3
    hanging.set()
    eventually(lambda: len(looked) == 110, "what waited is not looked at")
    assert workers.stop(10)


def test_so_many_hang_that_nobody_is_left_and_that_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEND_SECONDS", 0.01)
    monkeypatch.setattr(module, "STANDING_IN_MAX", 1)
    hanging = threading.Event()
    queue = WorkQueue(SystemClock().boot_seconds)

    def look(key: Key) -> None:
        hanging.wait(30)
        queue.done(key, None)

    workers = Workers(queue, look, 1, threading.Event(), overdue_seconds=0.02)
    for n in range(3):
        queue.add(Key("HudiTable", "hangs", str(n)))
    workers.start()
    eventually(lambda: len(workers.looks()) == 2 and not workers.working(), "it is not seen")
    assert queue.waiting()[0] == 1
    hanging.set()
    assert workers.stop(10)


def test_days_of_failures_are_waited_for_like_hours() -> None:
    policy = RetryPolicy()
    assert policy.wait_seconds(1) == 10
    assert policy.wait_seconds(100_000) == policy.backoff_max_seconds
