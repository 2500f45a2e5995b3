"""The faults and traces that other tests rely on: each does what its table says, in this process
and in tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_table.errors import HudiError, ObjectExistsError, OutcomeUnknownError, UnavailableError
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.recording import RecordingStorage, Trace
from tests.support.tables import memory_storage


def stream(storage: Storage, path: str = "p/new.parquet") -> None:
    with storage.open_write(path) as sink:
        sink.write(b"whole data")


WRITES: dict[str, Callable[[Storage], Any]] = {
    "put": lambda s: s.put("p/new.parquet", b"whole data"),
    "put_if_absent": lambda s: s.put_if_absent("p/new.parquet", b"whole data"),
    "close_write": stream,
}
READS: dict[str, Callable[[Storage], Any]] = {
    "get": lambda s: s.get("old"),
    "head": lambda s: s.head("old"),
    "list": lambda s: s.list(),
    "list_dir": lambda s: s.list_dir(),
    "open_read": lambda s: s.open_read("old"),
}


def faulty(fault: Fault, call: str) -> tuple[Storage, FaultyStorage]:
    inner = memory_storage()
    inner.put("old", b"old")
    return inner, FaultyStorage(inner, FaultPlan(at=1, fault=fault, only=lambda met: met.method == call))


def content(storage: Storage) -> bytes | None:
    return storage.get("p/new.parquet") if storage.list("p") else None


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize(
    ("fault", "error", "done"),
    [
        (Fault.CRASH_BEFORE, Crash, False),
        (Fault.CRASH_AFTER, Crash, True),
        (Fault.LOST_REPLY, OutcomeUnknownError, True),
        (Fault.LOST_REQUEST, OutcomeUnknownError, False),
        (Fault.UNAVAILABLE, UnavailableError, False),
    ],
)
def test_a_write_that_meets_a_fault_is_done_or_not_as_told(call: str, fault: Fault, error: type, done: bool) -> None:
    inner, storage = faulty(fault, call)
    with pytest.raises(error) as caught:
        WRITES[call](storage)
    assert type(caught.value) is error
    assert content(inner) == (b"whole data" if done else None)
    assert [met.method for met in storage.plan.fired] == [call]


@pytest.mark.parametrize("call", READS)
def test_a_read_that_meets_a_fault_is_unavailable_or_a_crash(call: str) -> None:
    for fault in (Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.UNAVAILABLE):
        _, storage = faulty(fault, call)
        with pytest.raises(UnavailableError):
            READS[call](storage)
        READS[call](storage)
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.TORN):
        _, storage = faulty(fault, call)
        with pytest.raises(Crash):
            READS[call](storage)


def test_a_torn_write_leaves_half_of_a_put_and_nothing_of_what_is_atomic() -> None:
    for call, left in (("put", b"whole"), ("put_if_absent", None), ("close_write", None)):
        inner, storage = faulty(Fault.TORN, call)
        with pytest.raises(Crash):
            WRITES[call](storage)
        assert content(inner) == left


def test_a_create_may_find_what_somebody_else_made_just_before() -> None:
    inner, storage = faulty(Fault.EXISTS, "put_if_absent")
    with pytest.raises(ObjectExistsError):
        storage.put_if_absent("p/new.parquet", b"whole data")
    assert content(inner) == b"somebody else's"


def test_after_a_crash_every_call_of_the_process_and_its_tasks_crashes() -> None:
    inner = memory_storage()
    plan = FaultPlan(at=2, fault=Fault.CRASH_AFTER)
    storage = FaultyStorage(inner, plan)
    task = storage.reopen()()
    storage.put("a", b"1")
    with pytest.raises(Crash):
        task.put("b", b"2")
    for one in (storage, task, storage.reopen()()):
        for call in (*WRITES.values(), *(read for name, read in READS.items())):
            with pytest.raises(Crash):
                call(one)
    assert [info.path for info in inner.list()] == ["a", "b"]
    assert [call.path for call in plan.calls] == ["a", "b"]


def test_a_crash_passes_every_handler_of_errors() -> None:
    storage = FaultyStorage(memory_storage(), FaultPlan(at=1))

    def swallow() -> None:
        try:
            storage.get("x")
        except Exception:  # noqa: BLE001 # the point of the test
            return

    with pytest.raises(Crash):
        swallow()


def test_an_open_stream_dies_with_a_crash_elsewhere() -> None:
    inner = memory_storage()
    storage = FaultyStorage(inner, FaultPlan(at=1, only=lambda call: call.path == "trigger"))

    def write() -> None:
        with storage.open_write("p/new.parquet") as sink:
            sink.write(b"half")
            with pytest.raises(Crash):
                storage.put("trigger", b"")

    with pytest.raises(Crash):
        write()
    assert inner.list() == []


def test_a_plan_without_a_fault_counts_every_call_also_of_tasks() -> None:
    plan = FaultPlan()
    storage = FaultyStorage(memory_storage(), plan)
    storage.put("old", b"old")
    for call in (*WRITES.values(), *READS.values()):
        storage.delete("p/new.parquet")
        call(storage)
    before = len(plan.calls)
    assert before == 1 + 2 * 8 + 1, "a stream is two calls"
    LocalEngine(4).map(lambda number: storage.reopen()().put(str(number), b""), range(20))
    assert [call.number for call in plan.calls] == list(range(1, before + 21))
    assert plan.fired == []


def test_faults_may_last_and_be_narrowed() -> None:
    plan = FaultPlan(at=2, fault=Fault.UNAVAILABLE, times=2, only=lambda call: call.writes)
    storage = FaultyStorage(memory_storage(), plan)
    outcomes = []
    for number in range(5):
        storage.list()
        try:
            storage.put(str(number), b"")
        except UnavailableError:
            outcomes.append("failed")
        else:
            outcomes.append("done")
    assert outcomes == ["done", "failed", "failed", "done", "done"]


def test_a_trace_tells_who_asked_what_on_which_condition_with_which_result() -> None:
    trace = Trace()
    storage = RecordingStorage(memory_storage(), trace, "w1")
    storage.put_if_absent("a/x", b"123")
    with pytest.raises(HudiError):
        storage.put_if_absent("a/x", b"4")
    storage.get("a/x")
    storage.list("a", start_after="a/b")
    storage.list_dir()
    with storage.open_write("a/y") as sink:
        sink.write(b"1")
    with pytest.raises(KeyError), storage.open_write("a/z"):
        raise KeyError
    storage.reopen()().delete("a/x")
    crashing = RecordingStorage(FaultyStorage(memory_storage(), FaultPlan(at=1)), trace, "w2")
    with pytest.raises(Crash):
        crashing.head("q")
    assert str(trace).splitlines() == [
        "w1: put a/x if absent -> ok",
        "w1: put a/x if absent -> ObjectExists",
        "w1: get a/x -> ok",
        "w1: list a if after a/b -> ok",
        "w1: list_dir / -> ok",
        "w1: write a/y -> ok",
        "w1: write a/z -> aborted",
        "w1/task: delete a/x -> ok",
        "w2: head q -> Crash",
    ]
    assert trace.steps[3].keys == ("a/x",)
    assert trace.steps[4].keys == ("a/",)
    assert [step.size for step in trace.steps[:3]] == [3, 0, 3]
    assert len(trace.writes()) == 5
