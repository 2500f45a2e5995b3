"""One suite for every store: what `Storage` promises, on local disk, in memory and on an S3
server."""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.errors import InvalidRequestError, ObjectExistsError, ObjectNotFoundError
from hudi_table.table.store.errors import ObjectChangedError
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from tests.support.s3 import S3Server, running_s3
from tests.support.scale import scaled

ODD_NAMES = (
    "city=São Paulo/x",
    "a%2Fb/x",
    "a%25b/x",
    "%00/x",
    "a b/x y",
    "p#q?/x",
    "[x]*{y}^~`/x",
    "a:b|<>/x",
    "a+b&c;d,e=$@!'()/x",
    '"quoted"/x',
    "é中😀/x",
    "c#1/x#1",
    "back\\slash/x",
    "...dots/..x",
    " leading and trailing /x",
    ".hoodie/.txn/00000000000000000001.json",
    ".hoodie_partition_metadata",
    "_SUCCESS",
    "x" * 255,
)


@dataclass
class Place:
    """A fresh base on one store, and a way to see its names without our code."""

    storage: Storage
    names: Callable[[], list[str]]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3() as server:
        yield server


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        base = tmp_path / "deep" / "base"
        return Place(open_storage(str(base)), lambda: files_below(base))
    if request.param == "memory":
        storage = open_storage(f"memory://{uuid.uuid4().hex}/some/prefix")
        return Place(storage, lambda: [info.path for info in storage.list()])
    server: S3Server = request.getfixturevalue("s3")
    uri = server.new_uri()
    prefix = uri.removeprefix(f"s3://{server.bucket}/") + "/"
    return Place(open_storage(uri, server.options), lambda: [key.removeprefix(prefix) for key in server.keys(prefix)])


@pytest.fixture
def storage(place: Place) -> Storage:
    return place.storage


def files_below(base: Path) -> list[str]:
    """Names of all files, as the operating system has them."""
    found = [os.path.relpath(os.path.join(folder, file), base) for folder, _, files in os.walk(base) for file in files]
    return sorted(found)


def paths(storage: Storage, prefix: str = "") -> list[str]:
    return [info.path for info in storage.list(prefix)]


def test_an_object_reads_back_as_it_was_put(storage: Storage) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    storage.put("a/b/file.bin", b"\x00\xffbytes")
    assert storage.get("a/b/file.bin") == b"\x00\xffbytes"
    info = storage.head("a/b/file.bin")
    assert (info.path, info.size) == ("a/b/file.bin", 7)
    assert before <= info.modified <= datetime.now(UTC) + timedelta(seconds=2)
    assert storage.list() == [info]


def test_a_put_replaces_what_was_there(storage: Storage) -> None:
    storage.put("x", b"old and longer")
    storage.put("x", b"new")
    assert storage.get("x") == b"new"
    assert paths(storage) == ["x"]


def test_an_empty_object_is_an_object(storage: Storage) -> None:
    storage.put_if_absent(".hoodie/20260101000000000.inflight", b"")
    storage.put("p/marker", b"")
    assert storage.get(".hoodie/20260101000000000.inflight") == b""
    assert storage.head("p/marker").size == 0
    assert storage.open_read("p/marker").read() == b""
    assert paths(storage) == [".hoodie/20260101000000000.inflight", "p/marker"]


def test_what_is_not_there_is_not_found(storage: Storage) -> None:
    storage.put("folder/file", b"x")
    for path in ("nope", "folder", "folder/file/below", "no/such/folder"):
        with pytest.raises(ObjectNotFoundError, match=r"no (file|object)"):
            storage.get(path)
        with pytest.raises(ObjectNotFoundError):
            storage.head(path)
        with pytest.raises(ObjectNotFoundError):
            storage.open_read(path)
        storage.delete(f"{path}/x")
    assert paths(storage) == ["folder/file"]


def test_an_empty_base_and_an_empty_folder_list_as_empty(storage: Storage) -> None:
    assert storage.list() == []
    assert storage.list_dir() == ([], [])
    storage.put("p/x", b"x")
    assert storage.list("q") == []
    assert storage.list_dir("q") == ([], [])
    assert storage.list("p/x") == []


def test_listings_are_by_whole_folders_and_sorted(storage: Storage) -> None:
    for path in ("p/b", "p/a", "p.x", "pp/x", "p/sub/deep/z", "p-1/x", "a"):
        storage.put(path, b"1")
    assert paths(storage) == sorted(["p/b", "p/a", "p.x", "pp/x", "p/sub/deep/z", "p-1/x", "a"])
    assert paths(storage, "p") == ["p/a", "p/b", "p/sub/deep/z"]
    assert storage.list_dir()[0] == ["p", "p-1", "pp"]
    assert [info.path for info in storage.list_dir()[1]] == ["a", "p.x"]
    folders, files = storage.list_dir("p")
    assert (folders, [info.path for info in files]) == (["p/sub"], ["p/a", "p/b"])
    assert [info.path for info in storage.list("p", start_after="p/a")] == ["p/b", "p/sub/deep/z"]
    assert [info.path for info in storage.list(start_after="p/b")] == ["p/sub/deep/z", "pp/x"]


def test_a_listing_holds_every_page(storage: Storage) -> None:
    names = [f".hoodie/.txn/{number:020d}.json" for number in range(1100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: storage.put_if_absent(name, b"{}"), names))
    assert paths(storage, ".hoodie/.txn") == names
    assert [info.path for info in storage.list_dir(".hoodie/.txn")[1]] == names
    assert [info.path for info in storage.list(".hoodie/.txn", start_after=names[1049])] == names[1050:]


def test_names_are_stored_byte_for_byte(place: Place) -> None:
    for name in ODD_NAMES:
        place.storage.put(name, name.encode())
    assert sorted(place.names()) == sorted(ODD_NAMES)
    assert paths(place.storage) == sorted(ODD_NAMES)
    for name in ODD_NAMES:
        assert place.storage.get(name) == name.encode()
        folder, _, _ = name.rpartition("/")
        if folder:
            assert folder.split("/")[0] in place.storage.list_dir()[0]
            assert name in paths(place.storage, folder)
        place.storage.delete(name)
    assert place.names() == []


def test_delete_may_be_repeated_and_leaves_no_folder(storage: Storage) -> None:
    storage.put(".hoodie/.temp/1/p/marker", b"")
    storage.put(".hoodie/hoodie.properties", b"")
    storage.delete(".hoodie/.temp/1/p/marker")
    storage.delete(".hoodie/.temp/1/p/marker")
    assert storage.list_dir(".hoodie")[0] == []
    assert paths(storage) == [".hoodie/hoodie.properties"]


def test_an_exclusive_create_finds_what_is_there(storage: Storage) -> None:
    storage.put_if_absent("x", b"first")
    with pytest.raises(ObjectExistsError, match="exists already"):
        storage.put_if_absent("x", b"second")
    assert storage.get("x") == b"first"
    storage.delete("x")
    storage.put_if_absent("x", b"third")
    assert storage.get("x") == b"third"


def test_only_what_is_as_it_was_seen_is_replaced(place: Place) -> None:
    storage = place.storage
    storage.put("f/x", b"first")
    seen = storage.head("f/x")
    storage.replace(seen, b"the second")
    assert storage.get("f/x") == b"the second"
    with pytest.raises(ObjectChangedError):
        storage.replace(seen, b"third")
    last = storage.head("f/x")
    storage.delete("f/x")
    with pytest.raises(ObjectChangedError):
        storage.replace(last, b"fourth")
    assert place.names() == []


@pytest.mark.parametrize("place", ["memory", pytest.param("s3", marks=pytest.mark.s3)], indirect=True)
def test_of_eight_racing_replacements_of_one_state_one_is_done(place: Place) -> None:
    """On an object store: a local disk looks first, which is no condition."""
    place.storage.put("x", b"first")
    seen = place.storage.head("x")

    def replaced(number: int) -> bool:
        try:
            place.storage.replace(seen, str(number).encode())
        except ObjectChangedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [number for number, done in enumerate(pool.map(replaced, range(8))) if done]
    assert [str(number).encode() for number in won] == [place.storage.get("x")]


def test_of_eight_racing_creates_exactly_one_wins(storage: Storage) -> None:
    rounds = scaled(40)
    with ThreadPoolExecutor(8) as pool:
        for number in range(rounds):
            path = f"race/{number}"

            def create(writer: int, path: str = path) -> bytes | None:
                data = f"writer {writer}".encode() * 100
                try:
                    storage.put_if_absent(path, data)
                except ObjectExistsError:
                    return None
                return data

            winners = [data for data in pool.map(create, range(8)) if data is not None]
            assert len(winners) == 1
            assert storage.get(path) == winners[0]


def test_creates_and_deletes_that_race_for_one_folder_lose_nothing(storage: Storage) -> None:
    def churn(worker: int) -> None:
        for number in range(scaled(30)):
            path = f"folder/sub/{worker}"
            storage.put_if_absent(path, str(number).encode())
            assert storage.get(path) == str(number).encode()
            storage.delete(path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(churn, range(4)))
    assert storage.list() == []


def test_a_reader_of_a_replaced_object_sees_old_or_new(storage: Storage) -> None:
    old, new = b"a" * 100_000, b"b" * 100_001
    storage.put("properties", old)

    def replace_in_turn() -> None:
        for turn in range(scaled(30)):
            storage.put("properties", new if turn % 2 else old)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_in_turn)
        seen = {storage.get("properties")}
        while not writing.done():
            seen.add(storage.get("properties"))
            assert paths(storage) == ["properties"]
        writing.result()
    assert seen <= {old, new}


@pytest.mark.parametrize("size", [0, 10, 9 << 20], ids=["empty", "small", "in parts"])
def test_a_stream_appears_whole_when_it_ends(storage: Storage, size: int) -> None:
    data = os.urandom(1 << 16)
    expected = (data * (size // len(data) + 1))[:size]
    with storage.open_write("p/data.parquet") as sink:
        for start in range(0, size, 100_000):
            sink.write(expected[start : start + 100_000])
        assert storage.list() == []
    assert storage.get("p/data.parquet") == expected
    assert paths(storage) == ["p/data.parquet"]


@pytest.mark.parametrize("size", [0, 10, 20 << 20], ids=["nothing", "little", "parts"])
def test_a_stream_that_fails_leaves_nothing(place: Place, size: int) -> None:
    def fail() -> None:
        with place.storage.open_write("p/data.parquet") as sink:
            sink.write(b"x" * size)
            raise KeyError("the task died")

    with pytest.raises(KeyError):
        fail()
    assert place.names() == []
    assert place.storage.list() == []


@pytest.mark.s3
def test_a_failed_upload_in_parts_is_aborted(s3: S3Server) -> None:
    storage = open_storage(s3.new_uri(), s3.options)

    def fail() -> None:
        with storage.open_write("data.parquet") as sink:
            sink.write(b"x" * (20 << 20))
            raise KeyError("the task died")

    with pytest.raises(KeyError):
        fail()
    assert s3.client().list_multipart_uploads(Bucket=s3.bucket).get("Uploads", []) == []


def test_a_stream_replaces_an_object(storage: Storage) -> None:
    storage.put("x", b"old")
    with storage.open_write("x") as sink:
        sink.write(b"new")
        assert storage.get("x") == b"old"
    assert storage.get("x") == b"new"
    assert paths(storage) == ["x"]


def test_parquet_is_written_and_read_in_place(storage: Storage) -> None:
    table = pa.table({"key": [f"k{i:06d}" for i in range(50_000)], "value": range(50_000), "text": ["x" * 40] * 50_000})
    with storage.open_write("p/rows.parquet") as sink:
        pq.write_table(table, sink, row_group_size=10_000, compression="none")
    assert storage.head("p/rows.parquet").size > 1_000_000
    with pq.ParquetFile(storage.open_read("p/rows.parquet"), pre_buffer=True) as file:
        assert file.metadata.num_row_groups == 5
        assert file.read() == table
        assert file.read_row_group(3, columns=["value"]) == table.select(["value"]).slice(30_000, 10_000)


def test_random_reads_return_what_is_there(storage: Storage) -> None:
    data = os.urandom(700_000)
    storage.put("x", data)
    with storage.open_read("x") as file:
        assert file.size() == len(data)
        for start, length in [(0, 10), (5, 300_000), (690_000, 20_000), (650_000, 50_000), (0, 700_000), (699_999, 9)]:
            file.seek(start)
            assert file.read(length) == data[start : start + length]
            assert file.tell() == min(start + length, len(data))


def test_another_process_opens_the_same_storage(storage: Storage) -> None:
    storage.put("x", b"1")
    again = pickle.loads(pickle.dumps(storage.reopen()))()
    assert again.get("x") == b"1"
    assert again.base_path == storage.base_path
    assert pickle.loads(pickle.dumps(storage)).get("x") == b"1"


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", ".", "./x", "a/./b", "a//b", "a/"),
        *("a\0b", "a\nb", "\x7f", "..\\x", "a\\..\\..\\x", "\ud800", "x.hudi-staging"),
    ],
)
def test_a_path_that_leaves_the_base_is_refused_before_any_request(place: Place, path: str) -> None:
    storage = place.storage
    storage.put("inside", b"1")
    for call in (storage.get, storage.head, storage.open_read, storage.delete):
        with pytest.raises(InvalidRequestError):
            call(path)
    for write in (storage.put, storage.put_if_absent):
        with pytest.raises(InvalidRequestError):
            write(path, b"x")
    with pytest.raises(InvalidRequestError), storage.open_write(path):
        pass
    if path:
        for listing in (storage.list, storage.list_dir):
            with pytest.raises(InvalidRequestError):
                listing(path)
    assert place.names() == ["inside"]


def test_a_name_too_long_for_the_store_is_refused_by_length(place: Place, request: pytest.FixtureRequest) -> None:
    for write in (place.storage.put, place.storage.put_if_absent):
        with pytest.raises(InvalidRequestError, match=r"File name too long|2053 bytes|\d{4} bytes"):
            write("p" * 2048 + "/file", b"x")
    assert place.names() == []
