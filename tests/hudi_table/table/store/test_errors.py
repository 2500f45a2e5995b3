"""What a store's bad days mean: which error, after how many requests and how long."""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from obstore.store import S3Store

from hudi_table.errors import (
    AccessDeniedError,
    HudiError,
    InvalidOptionError,
    InvalidRequestError,
    ObjectExistsError,
    OutcomeUnknownError,
    UnavailableError,
)
from hudi_table.table.store.errors import translate
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from tests.support.s3 import ACCESS, Replies, S3Server, running_s3, s3_replies

pytestmark = pytest.mark.s3
REPOSITORY = Path(__file__).parents[4]


def stream(storage: Storage) -> None:
    with storage.open_write("p/k") as sink:
        sink.write(b"x")


READS: dict[str, Callable[[Storage], Any]] = {
    "get": lambda s: s.get("p/k"),
    "head": lambda s: s.head("p/k"),
    "list": lambda s: s.list("p"),
    "list_dir": lambda s: s.list_dir("p"),
    "open_read": lambda s: s.open_read("p/k"),
}
WRITES: dict[str, Callable[[Storage], Any]] = {
    "put": lambda s: s.put("p/k", b"x"),
    "put_if_absent": lambda s: s.put_if_absent("p/k", b"x"),
    "stream": stream,
}
EVERY = {**READS, **WRITES, "delete": lambda s: s.delete("p/k")}


@pytest.fixture(scope="module")
def store() -> Iterator[Replies]:
    with s3_replies() as replies:
        yield replies


@pytest.fixture
def storage(store: Replies) -> Storage:
    store.requests.clear()
    return open_storage("s3://lake/table", store.options)


def failure(storage: Storage, call: str) -> HudiError:
    with pytest.raises(HudiError) as caught:
        EVERY[call](storage)
    return caught.value


@pytest.mark.parametrize("call", EVERY)
@pytest.mark.parametrize("answer", [(403, "AccessDenied"), (403, "InvalidAccessKeyId"), (401, "Unauthorized")], ids=str)
def test_refused_credentials_are_told_at_once(
    store: Replies, storage: Storage, call: str, answer: tuple[int, str]
) -> None:
    store.answer = answer
    error = failure(storage, call)
    assert type(error) is AccessDeniedError
    assert len(store.requests) == 1
    assert "'lake'" in str(error)
    assert store.endpoint in str(error)
    assert "check the access key" in str(error)
    assert ACCESS["secret_access_key"] not in repr(error) + str(error)


@pytest.mark.parametrize("call", EVERY)
@pytest.mark.parametrize("answer", [(503, "ServiceUnavailable"), (503, ""), (500, "InternalError"), "reset"], ids=str)
def test_reads_are_repeated_a_few_times_and_then_unavailable(
    store: Replies, storage: Storage, call: str, answer: tuple[int, str] | str
) -> None:
    store.answer = answer
    error = failure(storage, call)
    assert type(error) is (UnavailableError if call in READS or call == "delete" else OutcomeUnknownError)
    assert len(store.requests) == (1 if call == "put_if_absent" else 3)
    assert "'lake'" in str(error)


def test_an_exclusive_create_is_never_repeated_after_an_unclear_reply(store: Replies, storage: Storage) -> None:
    """A second try would meet the object of the first and be told that somebody else made it."""
    for answer in [(500, "InternalError"), "reset", 3.0]:
        store.requests.clear()
        store.answer = answer  # type: ignore[assignment] # one of each kind
        with pytest.raises(OutcomeUnknownError):
            storage.put_if_absent("p/k", b"x")
        assert len(store.requests) == 1


@pytest.mark.parametrize("answer", [(503, ""), (503, "ServiceUnavailable"), (503, "SlowDownWrite")], ids=str)
def test_a_refusal_that_need_not_be_the_stores_own_leaves_a_create_unknown(
    store: Replies, storage: Storage, answer: tuple[int, str]
) -> None:
    """A proxy may say so of a request that it has passed on, and MinIO of one that some of its
    disks have done."""
    store.answer = answer
    with pytest.raises(OutcomeUnknownError):
        storage.put_if_absent("p/k", b"x")
    assert len(store.requests) == 1


@contextlib.contextmanager
def resetting() -> Iterator[str]:
    """The endpoint of a server that reads the beginning of a request and then resets the
    connection."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    connection.recv(1 << 16)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_connection_that_is_reset_while_a_request_is_sent_was_one() -> None:
    """The store may have done what it was asked, or refused it before it had read everything."""
    with resetting() as endpoint:
        storage = open_storage("s3://lake/table", {"endpoint": endpoint, "retries": "0", **ACCESS})
        for size in (1, 32 << 20):
            with pytest.raises(OutcomeUnknownError):
                storage.put_if_absent("k", b"x" * size)


def test_an_azure_object_that_exists_is_told_from_a_conflict() -> None:
    raised = GenericError("Error performing PUT - status code: 409 <Error><Code>BlobAlreadyExists</Code></Error>")
    assert isinstance(translate(raised, path="k", where="az://b", scheme="az", writes=True), ObjectExistsError)


def test_a_create_that_another_one_is_in_the_way_of_is_sent_again(store: Replies, storage: Storage) -> None:
    """S3 answers 409 while a competing create runs: nothing was done, and the object need not
    exist."""
    store.answer = (409, "ConditionalRequestConflict")
    with pytest.raises(UnavailableError):
        storage.put_if_absent("p/k", b"x")
    assert len(store.requests) == 5
    store.answer = (412, "PreconditionFailed")
    with pytest.raises(ObjectExistsError):
        storage.put_if_absent("p/k", b"x")
    assert len(store.requests) == 6


@pytest.mark.parametrize("call", ["get", "list", "put", "put_if_absent", "stream"])
def test_a_missing_bucket_is_named(store: Replies, storage: Storage, call: str) -> None:
    store.answer = (404, "NoSuchBucket")
    error = failure(storage, call)
    assert type(error) is InvalidRequestError
    assert "bucket 'lake'" in str(error)
    assert "create it" in str(error)


@pytest.mark.parametrize("answer", [(400, "AuthorizationHeaderMalformed"), (301, "PermanentRedirect")], ids=str)
def test_a_refused_request_is_not_repeated(store: Replies, storage: Storage, answer: tuple[int, str]) -> None:
    store.answer = answer
    for call in ("get", "put", "list"):
        store.requests.clear()
        assert isinstance(failure(storage, call), InvalidRequestError)
        assert len(store.requests) == 1


@pytest.mark.parametrize("call", EVERY)
def test_an_endpoint_that_nobody_listens_at_is_unavailable_within_seconds(call: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        storage = open_storage("s3://lake/table", {"endpoint": endpoint, **ACCESS})
        begun = time.monotonic()
        error = failure(storage, call)
    assert type(error) is UnavailableError, "no connection, so nothing was done"
    assert time.monotonic() - begun < 8
    assert endpoint in str(error)
    assert "Connection refused" in str(error)
    assert "check the endpoint" in str(error)


def test_a_host_that_does_not_exist_is_unavailable() -> None:
    storage = open_storage("s3://lake/table", {"endpoint": "http://no-such-host.invalid:9000", **ACCESS})
    with pytest.raises(UnavailableError, match=r"no-such-host\.invalid"):
        storage.put_if_absent("x", b"")


def test_a_store_that_stalls_is_given_up_within_seconds(store: Replies, storage: Storage) -> None:
    store.answer = 5.0
    begun = time.monotonic()
    with pytest.raises(UnavailableError, match="did not answer"):
        storage.get("x")
    assert time.monotonic() - begun < 12


def test_a_stream_that_cannot_be_sent_raises_where_it_is_written(store: Replies, storage: Storage) -> None:
    store.answer = (403, "AccessDenied")
    written = 0

    def write() -> None:
        nonlocal written
        with storage.open_write("p/k") as sink:
            while written < 400:
                sink.write(b"x" * (1 << 20))
                written += 1

    with pytest.raises(AccessDeniedError):
        write()
    assert written < 400


def test_objects_that_no_table_has_make_a_listing_fail_by_name() -> None:
    with running_s3() as server:
        server.client().put_object(Bucket=server.bucket, Key="t/a/../b", Body=b"")
        storage = open_storage(f"s3://{server.bucket}/t", server.options)
        with pytest.raises(HudiError, match=r"a/\.\./b"):
            storage.list()


def test_folder_markers_of_other_tools_are_no_objects() -> None:
    with running_s3() as server:
        client = server.client()
        for key in ("t/", "t/p/", "t/p/q/", "t/empty/"):
            client.put_object(Bucket=server.bucket, Key=key, Body=b"")
        storage = open_storage(f"s3://{server.bucket}/t", server.options)
        storage.put("p/q/x", b"1")
        storage.put("p/none", b"")
        assert [info.path for info in storage.list("p")] == ["p/none", "p/q/x"]
        assert [info.path for info in storage.list_dir("p")[1]] == ["p/none"]
        assert "p/q" not in [info.path for info in storage.list()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bogus": "1"}, "bogus"),
        ({"timeout": "soon"}, "timeout is 'soon'"),
        ({"retries": "-1"}, "retries is '-1'"),
        ({"allow_http": "1"}, "'allow_http': '1' is neither 'true' nor 'false'"),
        ({"access_key_id": "only"}, "belong together"),
    ],
)
def test_options_that_cannot_be_used_are_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        open_storage("s3://lake/table", options)


def test_secrets_stand_in_no_repr_and_in_no_message(store: Replies, storage: Storage) -> None:
    assert ACCESS["secret_access_key"] not in f"{storage!r} {storage.reopen()!r} {storage.base_path}"


def test_options_may_be_spelled_as_other_libraries_do(store: Replies) -> None:
    store.answer = (404, "NoSuchKey")
    options = {"AWS_ENDPOINT_URL": store.endpoint, "aws_region": "eu-west-1"}
    options |= {f"aws_{key}": value for key, value in ACCESS.items()}
    store.requests.clear()
    with pytest.raises(HudiError):
        open_storage("s3a://lake/table", options).get("x y/é")
    assert store.requests == [("GET", "/lake/table/x%20y/%C3%A9")]


def test_credentials_come_from_the_environment(store: Replies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", store.endpoint)
    store.answer = (403, "InvalidAccessKeyId")
    store.requests.clear()
    with pytest.raises(AccessDeniedError):
        open_storage("s3://lake/table").get("x")
    assert store.requests == [("GET", "/lake/table/x")]


OTHER_PROCESS = """
import pickle, sys
print(pickle.loads(bytes.fromhex(sys.argv[1]))().get("x").decode())
"""


def in_another_process(storage: Storage) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, pickle.dumps(storage.reopen()).hex()],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY / "spark_app"), "PATH": ""},
    )


def test_another_process_reads_the_same_bucket() -> None:
    with running_s3() as server:
        storage = open_storage(server.new_uri(), server.options)
        storage.put("x", b"from here")
        done = in_another_process(storage)
    assert done.stdout == "from here\n", done.stderr


def test_another_process_is_told_that_memory_is_not_shared() -> None:
    storage = open_storage("memory://not-shared/t")
    storage.put("x", b"1")
    done = in_another_process(storage)
    assert done.returncode == 1
    assert "memory://not-shared/t lives in the memory of process" in done.stderr


def test_the_server_of_the_tests_shows_what_it_stores() -> None:
    with running_s3() as server:
        assert isinstance(server, S3Server)
        open_storage(server.new_uri(), server.options).put("x", b"1")
        found = server.keys()
        assert [key.rpartition("/")[2] for key in found] == ["x"]


def test_tables_of_one_bucket_share_clients_and_other_options_have_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(S3Store):
        def __new__(cls, *given: Any, **options: Any) -> Any:
            made.append(given)
            return S3Store(*given, **options)

    monkeypatch.setattr("obstore.store.S3Store", Counted)
    options = {"endpoint": "http://127.0.0.1:9", **ACCESS}
    for table in ("a", "b", "c/d"):
        assert open_storage(f"s3://shared/{table}", options).base_path == f"s3://shared/{table}"
    assert len(made) == 2, "one that repeats requests and one that does not"
    open_storage("s3://shared/a", options | {"secret_access_key": "another"})
    open_storage("s3://shared/a", options | {"timeout": "7"})
    open_storage("s3://other/a", options)
    assert len(made) == 8


class GenericError(Exception):
    """As obstore's of this name."""


@pytest.mark.parametrize(
    ("scheme", "asked", "named"),
    [
        ("s3", "http://169.254.169.254/latest/api/token", "AWS_SECRET_ACCESS_KEY"),
        (
            "gs",
            "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token",
            "GOOGLE_SERVICE_ACCOUNT",
        ),
        (
            "gs",
            "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token",
            "GOOGLE_SERVICE_ACCOUNT",
        ),
        (
            "abfss",
            "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2019-08-01",
            "AZURE_STORAGE_ACCOUNT_KEY",
        ),
    ],
)
def test_who_gives_no_credentials_is_told_those_of_that_store(scheme: str, asked: str, named: str) -> None:
    # The texts of obstore 0.12.1; nothing is asked of such an address here.
    raised = GenericError(
        f"Generic error: Error performing token request: Error performing GET {asked} in 5ms - status code: 403"
    )
    found = translate(raised, path="k", where="the store", scheme=scheme, writes=False)
    assert isinstance(found, AccessDeniedError)
    assert named in str(found)
    assert ("AWS_" in str(found)) == (scheme == "s3")


def test_what_is_advised_after_a_refusal_fits_the_store() -> None:
    refused = GenericError("Error performing GET - status code: 403")
    assert "access key" not in str(translate(refused, path="k", where="gs://b", scheme="gs", writes=False))
    moved = GenericError("received redirect without LOCATION")
    assert "region" not in str(translate(moved, path="k", where="az://b", scheme="az", writes=False))
