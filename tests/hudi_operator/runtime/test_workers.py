"""Workers survive whatever a look raises, and a look that hangs costs no other resource its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from hudi_operator.api.names import SET
from hudi_operator.api.resources import Key
from hudi_operator.launchers.local import LocalLauncher
from hudi_operator.plan.effects import RequeueAfter
from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime import workers as module
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.local.folder import FolderCluster
from hudi_operator.runtime.operator import Operator
from hudi_operator.runtime.queue import SHARE, WorkQueue
from hudi_operator.runtime.reconcile import Reconciler
from hudi_operator.runtime.workers import Workers
from hudi_table.errors import AccessDeniedError, HudiError
from hudi_table.table.store.clock import SystemClock
from tests.support.kubelet import eventually
from tests.support.manifests import manifest, spec
from tests.support.set_manifests import set_spec

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


@pytest.mark.parametrize("error", [None, AccessDeniedError("refused")])
def test_a_set_hears_of_what_we_say_of_its_table_ourselves(
    operator: Operator, tmp_path: Path, error: HudiError | None
) -> None:
    cluster = cast("Any", operator.cluster)
    cluster.apply(manifest("shop", "HudiTableSet", **set_spec()))
    if error is not None:
        poisoned(operator).errors["member"] = error
    document = manifest("member", **spec(location=f"file://{tmp_path}/member", ingest=[]))
    document["metadata"]["labels"] = {SET: "shop"}
    operator.queue.add(cluster.apply(document))
    operator.start()
    eventually(lambda: "shop" in poisoned(operator).looked, "nobody looks at the set of a table that has changed")


def test_a_condition_that_cannot_be_written_ends_no_worker(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(key: Key, problem: object, wait: float) -> None:
        raise HudiError("refused")

    monkeypatch.setattr(operator.reconciler, "report_failure", refuse)
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


class Hanging:
    """Workers whose looks at the namespace `hangs` last until they are let go."""

    def __init__(self, count: int, overdue_seconds: float, share: int = SHARE) -> None:
        self.go, self.looked = threading.Event(), list[str]()
        self.queue = WorkQueue(SystemClock().boot_seconds, share=share)
        self.workers = Workers(self.queue, self.look, count, threading.Event(), overdue_seconds=overdue_seconds)

    def look(self, key: Key) -> None:
        if key.namespace == "hangs":
            self.go.wait(30)
        self.looked.append(key.namespace)
        self.queue.done(key, None)

    def start(self, hanging: int, good: int) -> None:
        """Resources that hang, and a little later others, of a namespace each."""
        for n in range(hanging):
            self.queue.add(Key("HudiTable", "hangs", str(n)))
        self.workers.start()
        for n in range(good):
            self.queue.add(Key("HudiTable", f"good-{n}", "t"), 0.1)

    def end(self, looks: int) -> None:
        """Let go; all that waited is looked at."""
        self.go.set()
        eventually(lambda: len(self.looked) == looks, "what hung, or waited, is not looked at")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are counted every moment."""
    monkeypatch.setattr(module, "TEND_SECONDS", 0.01)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("hanging", "good", "share"), [(5, 1, SHARE), (100, 10, 3)], ids=["few", "a whole namespace"])
def test_looks_that_hang_are_stood_in_for_and_cost_the_others_nothing(hanging: int, good: int, share: int) -> None:
    hung = Hanging(2, 0.02, share)
    hung.start(hanging, good)
    eventually(lambda: len(hung.looked) == good, "nobody looks at the others")
    eventually(
        lambda: len(hung.workers.reconciles()) == min(share, hanging), "a namespace has more, or less, than its share"
    )
    eventually(lambda: hung.workers.working() >= 2, "nobody stands in")
    hung.end(hanging + good)
    eventually(lambda: hung.workers.working() <= 3, "those who stood in go on for ever")
    assert hung.workers.stop(10)


@pytest.mark.usefixtures("often")
def test_so_many_hang_that_nobody_is_left_and_that_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STANDING_IN_MAX", 1)
    hung = Hanging(1, 0.02)
    hung.start(3, 0)
    eventually(lambda: len(hung.workers.reconciles()) == 2 and not hung.workers.working(), "it is not seen")
    assert hung.queue.waiting()[0] == 1
    hung.end(3)
    assert hung.workers.stop(10)


def test_days_of_failures_are_waited_for_like_hours() -> None:
    policy = RetryPolicy()
    assert policy.wait_seconds(1) == 10
    assert policy.wait_seconds(100_000) == policy.backoff_max_seconds
