"""Objects of many megabytes: uploads in parts, and creates that stay exclusive, on a server that
serves requests side by side."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hudi_table.errors import AccessDeniedError, ObjectExistsError, OutcomeUnknownError, UnavailableError
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.store.retry import Pace
from tests.support.s3 import Replies, S3Server, paced, running_s3, s3_replies
from tests.support.versitygw import running_versitygw

pytestmark = pytest.mark.s3
MIB = 1 << 20
NO_SUCH_UPLOAD = b"<Error><Code>NoSuchUpload</Code></Error>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_versitygw(tmp_path_factory.mktemp("gateway") / "store") as found:
        yield found


def upload(storage: Storage, path: str, data: bytes) -> None:
    with storage.open_write(path) as sink:
        for start in range(0, len(data), MIB):
            sink.write(data[start : start + MIB])


def uploads(server: S3Server) -> list[Any]:
    found: list[Any] = server.client().list_multipart_uploads(Bucket=server.bucket).get("Uploads", [])
    return found


def test_of_racing_creates_of_seventy_megabytes_one_wins_and_is_there_whole(server: S3Server) -> None:
    storage = open_storage(server.new_uri(), server.options)

    def create(writer: int) -> bool:
        try:
            storage.put_if_absent("big", bytes([writer]) * (70 * MIB))
        except (ObjectExistsError, OutcomeUnknownError):
            # A server that refuses before it has read everything may close the connection: then a look has to tell.
            return False
        return True

    with ThreadPoolExecutor(3) as pool:
        won = list(pool.map(create, range(3)))
    assert sorted(won) == [False, False, True]
    assert storage.get("big") == bytes([won.index(True)]) * (70 * MIB)


def test_an_upload_in_parts_reads_back_and_leaves_nothing_when_it_fails(server: S3Server) -> None:
    storage = open_storage(server.new_uri(), server.options)
    data = os.urandom(MIB) * 100
    upload(storage, "whole", data)
    assert storage.get("whole") == data

    def fail() -> None:
        with storage.open_write("broken") as sink:
            sink.write(data)
            raise KeyError("the task died")

    with pytest.raises(KeyError):
        fail()
    assert [info.path for info in storage.list()] == ["whole"]
    assert uploads(server) == []


class Watched:
    """Counts the parts that are under way, and can lose its reply to the end of an upload, which it
    then knows no more."""

    def __init__(self, app: Any) -> None:
        self._app, self._lock = app, threading.Lock()
        self._parts: dict[str, int] = {}
        self.most_of_one = self.most = self.ends = 0
        self.loses_ends = False

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        query = environ["QUERY_STRING"]
        if environ["REQUEST_METHOD"] == "POST" and "uploadId" in query:
            return self._end(environ, start_response)
        if "partNumber" not in query:
            return self._pass(environ, start_response)
        upload_id = re.findall("uploadId=([^&]+)", query)[0]
        with self._lock:
            self._parts[upload_id] = self._parts.get(upload_id, 0) + 1
            self.most_of_one = max(self.most_of_one, self._parts[upload_id])
            self.most = max(self.most, sum(self._parts.values()))
        time.sleep(0.1)
        try:
            return self._pass(environ, start_response)
        finally:
            with self._lock:
                self._parts[upload_id] -= 1

    def _end(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        self.ends += 1
        if not self.loses_ends:
            return self._pass(environ, start_response)
        if self.ends == 1:
            list(self._app(environ, lambda *_: None))
            start_response("500 Internal Error", [("Content-Length", "0")])
            return [b""]
        start_response("404 Not Found", [("Content-Length", str(len(NO_SUCH_UPLOAD)))])
        return [NO_SUCH_UPLOAD]

    def _pass(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        return list(self._app(environ, start_response))


@pytest.fixture
def watched() -> Iterator[tuple[Storage, Watched]]:
    made: list[Watched] = []

    def around(app: Any) -> Watched:
        made.append(Watched(app))
        return made[0]

    with running_s3(around) as server:
        yield open_storage(server.new_uri(), server.options), made[0]


def test_parts_go_at_once_and_many_uploads_share_what_may_be_under_way(watched: tuple[Storage, Watched]) -> None:
    storage, server = watched
    upload(storage, "alone", b"x" * (80 * MIB))
    assert 4 <= server.most_of_one <= 8
    server.most = 0
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: upload(storage, f"{number}", b"x" * (40 * MIB)), range(8)))
    assert server.most <= 16 + 8
    assert {info.size for info in storage.list()} == {80 * MIB, 40 * MIB}


def test_an_upload_whose_end_was_done_and_not_confirmed_is_unknown(watched: tuple[Storage, Watched]) -> None:
    """The client sends the end again and is told that there is no such upload: that it was done is
    known by a look alone."""
    storage, server = watched
    server.loses_ends = True
    with pytest.raises(OutcomeUnknownError):
        upload(storage, "k", b"x" * (20 * MIB))
    assert server.ends == 2
    assert storage.head("k").size == 20 * MIB


@pytest.fixture
def complaining() -> Iterator[tuple[Storage, Replies, Pace]]:
    """A storage on a store that is asked too much, the store, and the storage's pace."""
    with s3_replies((503, "SlowDown")) as store:
        pace = Pace(retries=2)
        yield paced(store.options, "lake", pace), store, pace


def test_an_upload_whose_parts_are_told_to_slow_down_slows_the_process_down(
    complaining: tuple[Storage, Replies, Pace],
) -> None:
    storage, store, pace = complaining
    with pytest.raises(UnavailableError, match="SlowDown"):
        upload(storage, "k", b"x" * (20 * MIB))
    # As often as any other request that is told so, for it stands for a whole object.
    assert len(store.requests) == 7
    assert pace.limit <= 1


def test_parts_of_an_upload_wait_for_their_turn_at_a_store_that_is_asked_too_much(
    complaining: tuple[Storage, Replies, Pace],
) -> None:
    storage, store, pace = complaining
    store.answer = (403, "AccessDenied")
    pace.limit, under_way, go_on = 1.0, threading.Event(), threading.Event()

    def long() -> None:
        under_way.set()
        go_on.wait()

    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(pace.send, long)
        under_way.wait()
        uploaded = pool.submit(upload, storage, "k", b"x" * (20 * MIB))
        time.sleep(0.3)
        sent_meanwhile = len(store.requests)
        go_on.set()
        other.result()
        assert isinstance(uploaded.exception(), AccessDeniedError)
    assert (sent_meanwhile, len(store.requests)) == (0, 1)


def test_what_uploads_took_they_give_back() -> None:
    pace = Pace()
    with pace.upload() as first, pace.upload() as second, pace.upload() as third:
        assert (first, second, third) == (8, 4, 2)
    with pace.upload() as again:
        assert again == 8
