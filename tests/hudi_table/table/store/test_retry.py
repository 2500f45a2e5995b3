"""Requests that a store refuses because there are too many, and what is told of one whose reply was
lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hudi_table.errors import AccessDeniedError, HudiError, OutcomeUnknownError, UnavailableError
from hudi_table.table.store.errors import ConflictingCreateError, SlowDownError
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.store.retry import AT_ONCE_MAX, Pace
from tests.support.s3 import Replies, paced, running_s3, s3_replies

pytestmark = pytest.mark.s3
SLOW_DOWN, FAULT = (503, "SlowDown"), (500, "InternalError")
BODY = b"<Error><Code>SlowDown</Code></Error>"


@pytest.fixture(scope="module")
def store() -> Iterator[Replies]:
    with s3_replies() as replies:
        yield replies


@pytest.fixture
def storage(store: Replies) -> Storage:
    store.requests.clear()
    store.script.clear()
    return open_storage("s3://lake/table", store.options)


class Narrow:
    """A store that serves so many requests at once and refuses all others."""

    def __init__(self, app: Any, at_once: int) -> None:
        self._app, self._at_once, self._lock = app, at_once, threading.Lock()
        self._under_way = self.served = self.refused = self.most = 0

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        with self._lock:
            refuse = self._under_way >= self._at_once
            self.refused += refuse
            self.served += not refuse
            self._under_way += not refuse
        if refuse:
            start_response("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", str(len(BODY)))])
            return [BODY]
        try:
            time.sleep(0.01)
            return list(self._app(environ, start_response))
        finally:
            with self._lock:
                self._under_way -= 1


def test_a_store_that_is_asked_too_much_gets_as_many_requests_as_it_takes() -> None:
    narrow: list[Narrow] = []

    def around(app: Any) -> Narrow:
        narrow.append(Narrow(app, 1_000))
        return narrow[0]

    with running_s3(around) as server:
        storage = open_storage(server.new_uri(), server.options)
        narrow[0]._at_once, narrow[0].served = 4, 0
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(lambda number: storage.put_if_absent(f"p/{number}", str(number).encode()), range(300)))
            assert len(list(pool.map(lambda number: storage.get(f"p/{number}"), range(300)))) == 300
        narrow[0]._at_once = 1_000
        assert len(storage.list("p")) == 300
    # Of 32 at once 28 would be refused, time and again.
    assert narrow[0].refused < narrow[0].served


def slow_down(*, after: int = 0) -> Callable[[], int]:
    """A request that is told to slow down so many times, and then answered."""
    left = [after]

    def request() -> int:
        left[0] -= 1
        if left[0] >= 0:
            raise SlowDownError("slow down")
        return 1

    return request


def test_a_complaint_halves_what_is_under_way_and_answers_raise_it_again() -> None:
    pace = Pace(retries=3)
    assert pace.limit == AT_ONCE_MAX
    assert pace.send(slow_down(after=1)) == 1
    assert pace.limit <= 2
    for _ in range(200):
        pace.send(slow_down())
    assert 10 < pace.limit < AT_ONCE_MAX
    for _ in range(5000):
        pace.send(slow_down())
    assert pace.limit == AT_ONCE_MAX


def test_complaints_of_requests_that_were_sent_together_are_one() -> None:
    pace, together = Pace(), threading.Barrier(8)

    def refused() -> None:
        together.wait()
        raise SlowDownError("slow down")

    def send() -> None:
        with pytest.raises(SlowDownError):
            pace.send(refused)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(send) for _ in range(8)]:
            done.result()
    assert 3 <= pace.limit <= 4.0


def test_no_more_than_the_limit_are_under_way() -> None:
    pace, lock = Pace(limit=3.0), threading.Lock()
    under_way, most = [0], [0]

    def request() -> None:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.005)
        with lock:
            under_way[0] -= 1
        raise AccessDeniedError("an answer, too")

    def send(_: int) -> None:
        pace.limit = 3.0
        with pytest.raises(AccessDeniedError):
            pace.send(request)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(send, range(60)))
    # Answers raise the limit a little, and twelve threads ask.
    assert 3 <= most[0] <= 6


def test_a_store_that_only_complains_is_unavailable_and_nothing_was_done(store: Replies, storage: Storage) -> None:
    store.answer = SLOW_DOWN
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: storage.get("k"),
        "list": lambda: storage.list("p"),
        "put": lambda: storage.put("k", b"x"),
        "create": lambda: storage.put_if_absent("k", b"x"),
    }

    def error_of(name: str) -> HudiError:
        with pytest.raises(HudiError) as caught:
            calls[name]()
        return caught.value

    with ThreadPoolExecutor(len(calls)) as pool:
        errors = dict(zip(calls, pool.map(error_of, calls), strict=True))
    assert {name: type(error) for name, error in errors.items()} == dict.fromkeys(calls, SlowDownError)
    assert all(isinstance(error, UnavailableError) for error in errors.values())
    # Each once and six times more: twice as often as after a fault, and two.
    assert len(store.requests) == 7 * len(calls)


def test_a_create_that_was_told_to_slow_down_is_sent_again(store: Replies, storage: Storage) -> None:
    store.script[:] = [SLOW_DOWN, (429, "TooManyRequests"), (200, "")]
    storage.put_if_absent("k", b"x")
    assert [method for method, _ in store.requests] == ["PUT"] * 3


def test_a_create_whose_reply_was_lost_after_a_complaint_is_unknown_and_not_sent_again(
    store: Replies, storage: Storage
) -> None:
    store.script[:] = [SLOW_DOWN, "reset", (200, "")]
    with pytest.raises(OutcomeUnknownError):
        storage.put_if_absent("k", b"x")
    assert len(store.requests) == 2


@pytest.mark.parametrize("later", [SLOW_DOWN, (403, "AccessDenied"), (400, "ExpiredToken")], ids=str)
def test_what_may_have_been_done_stays_unknown_whatever_its_repetitions_are_told(
    store: Replies, storage: Storage, later: tuple[int, str]
) -> None:
    store.script[:] = [FAULT]
    store.answer = later
    with pytest.raises(OutcomeUnknownError, match=later[1]):
        storage.put("k", b"x")


def test_what_may_have_been_done_is_done_when_a_repetition_is(store: Replies, storage: Storage) -> None:
    store.script[:] = [FAULT, "reset", (200, "")]
    storage.put("k", b"x")
    assert len(store.requests) == 3


def test_a_listing_goes_on_where_it_was_interrupted() -> None:
    listings: list[str] = []

    class Interrupted:
        def __init__(self, app: Any) -> None:
            self._app = app

        def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
            if "list-type" in environ["QUERY_STRING"]:
                listings.append(environ["QUERY_STRING"])
                if len(listings) == 2:
                    start_response("500 Internal Error", [("Content-Length", "0")])
                    return [b""]
            found: Iterable[bytes] = self._app(environ, start_response)
            return found

    with running_s3(Interrupted) as server:
        storage = open_storage(server.new_uri(), server.options)
        names = [f"p/{number:05}" for number in range(2100)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: storage.put(name, b""), names))
        listings.clear()
        assert [info.path for info in storage.list("p")] == names
    assert len(listings) == 4, "three pages, of which the second was asked for twice"
    assert "p%2F00999" in listings[2]


@pytest.mark.parametrize(("took", "sent"), [(0.0, 4), (0.6, 2), (0.3, 3)])
def test_a_request_is_repeated_once_however_long_it_took_and_further_while_repetitions_are_short(
    took: float, sent: int
) -> None:
    """One that stalls takes the whole timeout: with the usual one it was never repeated."""
    pace, count = Pace(retries=3, seconds=0.5), [0]

    def stalls() -> None:
        count[0] += 1
        time.sleep(took)
        raise UnavailableError("did not answer")

    with pytest.raises(UnavailableError):
        pace.send(stalls)
    assert count[0] == sent


def test_who_waited_long_for_a_turn_and_is_told_to_slow_down_asks_again() -> None:
    pace, begun, answered = Pace(retries=3, seconds=0.05, limit=1.0), threading.Event(), slow_down(after=2)

    def long() -> None:
        begun.set()
        time.sleep(0.3)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(pace.send, long)
        begun.wait()
        assert pace.send(answered) == 1
        other.result()


def test_each_page_of_a_long_listing_is_repeated_as_a_request_of_its_own() -> None:
    listings: list[str] = []

    class Slow:
        """Answers each page late, and every second request for one with a fault."""

        def __init__(self, app: Any) -> None:
            self._app = app

        def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
            if "list-type" in environ["QUERY_STRING"]:
                listings.append(environ["QUERY_STRING"])
                if len(listings) % 2 == 0:
                    start_response("500 Internal Error", [("Content-Length", "0")])
                    return [b""]
                time.sleep(0.2)
            found: Iterable[bytes] = self._app(environ, start_response)
            return found

    with running_s3(Slow) as server:
        storage = paced(server.options, server.bucket, Pace(retries=1, seconds=0.1))
        names = [f"p/{number:05}" for number in range(2100)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: storage.put(name, b""), names))
        assert [info.path for info in storage.list("p")] == names
    assert len(listings) == 5, "three pages, of which the second and the third were asked for twice"


@pytest.mark.parametrize("kind", [ConflictingCreateError, SlowDownError])
def test_what_only_the_library_tells_apart_has_the_name_of_the_error_that_callers_know(kind: type[HudiError]) -> None:
    """A page of errors and the reason of a condition go by the name."""
    assert kind.name() == UnavailableError.name() == "Unavailable"
