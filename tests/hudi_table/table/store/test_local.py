"""Local disk: links, folders, what a crash leaves, what is synced."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.errors import (
    AccessDeniedError,
    InvalidOptionError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    UnavailableError,
)
from hudi_table.table.store import local_files
from hudi_table.table.store.opening import open_storage

REPOSITORY = Path(__file__).parents[4]


def test_opening_a_base_makes_nothing(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "a" / "b"))
    assert storage.list() == []
    assert list(tmp_path.iterdir()) == []
    storage.put("x", b"1")
    assert (tmp_path / "a" / "b" / "x").read_bytes() == b"1"


def test_new_files_have_the_mode_of_the_process(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    before = os.umask(0o027)
    try:
        storage.put("put", b"")
        storage.put_if_absent("create", b"")
        with storage.open_write("stream"):
            pass
    finally:
        os.umask(before)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("put", "create", "stream")} == {0o640}


def test_local_reads_are_native(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put("x", b"data")
    assert isinstance(storage.open_read("x"), pa.OSFile)


@pytest.mark.parametrize("name", ["folder", "file"])
def test_a_link_out_of_the_base_is_refused_by_every_method(tmp_path: Path, name: str) -> None:
    outside, base = tmp_path / "outside", tmp_path / "base"
    outside.mkdir()
    base.mkdir()
    (outside / "secret").write_bytes(b"secret")
    storage = open_storage(str(base))
    (base / "folder").symlink_to(outside)
    (base / "file").symlink_to(outside / "secret")
    path = "folder/secret" if name == "folder" else "file"
    for read in (storage.get, storage.head, storage.open_read):
        with pytest.raises(InvalidRequestError, match="through a symbolic link"):
            read(path)
    for listing in (storage.list, storage.list_dir):
        with pytest.raises(InvalidRequestError, match="through a symbolic link"):
            listing()
    with pytest.raises(InvalidRequestError, match="through a symbolic link"):
        storage.list("folder")
    for write in (storage.put, storage.put_if_absent):
        with pytest.raises(InvalidRequestError, match="through a symbolic link"):
            write("folder/new", b"x")
    with pytest.raises(InvalidRequestError, match="through a symbolic link"), storage.open_write("folder/new"):
        pass
    with pytest.raises(InvalidRequestError, match="through a symbolic link"):
        storage.delete("folder/secret")
    assert [entry.name for entry in outside.iterdir()] == ["secret"]


def test_writing_to_a_link_replaces_the_link_and_not_its_target(tmp_path: Path) -> None:
    outside, base = tmp_path / "outside", tmp_path / "base"
    outside.write_bytes(b"untouched")
    base.mkdir()
    storage = open_storage(str(base))
    (base / "put").symlink_to(outside)
    (base / "create").symlink_to(outside)
    (base / "stream").symlink_to(outside)
    storage.put("put", b"new")
    with pytest.raises(ObjectExistsError):
        storage.put_if_absent("create", b"new")
    with storage.open_write("stream") as sink:
        sink.write(b"new")
    storage.delete("create")
    assert outside.read_bytes() == b"untouched"
    assert {entry.name for entry in base.iterdir()} == {"put", "stream"}


def test_links_inside_the_base_are_read_and_the_base_may_be_one(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "base").symlink_to(real)
    storage = open_storage(str(tmp_path / "base"))
    storage.put("a", b"1")
    (real / "b").symlink_to(real / "a")
    assert storage.get("b") == b"1"
    assert [info.path for info in storage.list()] == ["a", "b"]
    assert storage.base_path == str(tmp_path / "base")
    (real / "loop").symlink_to(real)
    with pytest.raises(InvalidRequestError, match="symbolic link to a folder"):
        storage.list()


def test_a_dangling_link_is_no_object(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert storage.list() == []
    with pytest.raises(ObjectNotFoundError):
        storage.get("gone")


def test_a_file_where_a_folder_is_needed_is_named(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put("p", b"a file")
    storage.put("q/x", b"in a folder")
    for write in (storage.put, storage.put_if_absent):
        with pytest.raises(InvalidRequestError, match=r"'p/x' cannot be written"):
            write("p/x", b"1")
    with pytest.raises((InvalidRequestError, ObjectExistsError), match="q"):
        storage.put("q", b"1")
    with pytest.raises(ObjectExistsError):
        storage.put_if_absent("q", b"1")
    assert [info.path for info in storage.list()] == ["p", "q/x"]


def test_leftovers_of_a_crash_are_never_listed(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put("x", b"1")
    (tmp_path / "0123abcd.hudi-staging").write_bytes(b"half")
    assert [info.path for info in storage.list()] == ["x"]
    assert storage.list_dir() == ([], storage.list())


def test_checksum_sidecars_are_files_like_others(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put(".hoodie/hoodie.properties", b"")
    storage.put(".hoodie/.hoodie.properties.crc", b"crc\0")
    assert [info.path for info in storage.list(".hoodie")] == [
        ".hoodie/.hoodie.properties.crc",
        ".hoodie/hoodie.properties",
    ]
    storage.delete(".hoodie/.hoodie.properties.crc")
    assert [info.path for info in storage.list(".hoodie")] == [".hoodie/hoodie.properties"]


def test_a_file_system_without_unnamed_files_serves_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on NFS: the staging name is linked, and goes in any case."""
    monkeypatch.delattr(os, "O_TMPFILE")
    storage = open_storage(str(tmp_path))
    storage.put_if_absent("p/x", b"1")
    with pytest.raises(ObjectExistsError):
        storage.put_if_absent("p/x", b"2")
    with storage.open_write("p/y") as sink:
        sink.write(b"3")
        assert [info.path for info in storage.list()] == ["p/x"]
    with pytest.raises(KeyError), storage.open_write("p/z") as sink:
        raise KeyError
    assert sorted(entry.name for entry in (tmp_path / "p").iterdir()) == ["x", "y"]


def test_a_folder_whose_deletion_takes_long_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ext4 answers EPERM to a file without a name until the deletion has ended, however often it is
    asked; a file with a name waits for the end."""
    open_file = os.open

    def going(path: str, flags: int, *mode: int, **more: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
        return open_file(path, flags, *mode, **more)

    monkeypatch.setattr(os, "open", going)
    storage = open_storage(str(tmp_path))
    storage.put_if_absent("p/x", b"1")
    assert storage.get("p/x") == b"1"
    assert [entry.name for entry in (tmp_path / "p").iterdir()] == ["x"]


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))

    def fill() -> None:
        with storage.open_write("x") as sink:
            # /dev/full answers every write with ENOSPC.
            full = os.open("/dev/full", os.O_WRONLY)
            os.dup2(full, sink.raw.fileno())  # type: ignore[attr-defined] # a BufferedWriter
            os.close(full)
            sink.write(b"x" * (4 << 20))

    with pytest.raises(UnavailableError, match="No space left on device"):
        fill()
    assert storage.list() == []


def test_a_folder_that_may_not_be_written_is_an_access_error() -> None:
    """/sys takes new folders from nobody, root included."""
    with pytest.raises(AccessDeniedError, match="check owner and mode"):
        open_storage("/sys/hudi-table").put("x", b"1")


@pytest.mark.parametrize("fsync", [True, False])
def test_contents_are_synced_before_their_name_and_names_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool
) -> None:
    """By the order of the system calls: the file's fsync, then link or rename, then the folder's
    fsync."""
    calls: list[str] = []

    def spied(name: str, real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            what = "folder" if name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode) else "file"
            calls.append(f"fsync {what}" if name == "fsync" else name)
            return real(*args, **kwargs)

        return call

    for name in ("fsync", "link", "replace", "mkdir"):
        monkeypatch.setattr(os, name, spied(name, getattr(os, name)))
    storage = open_storage(str(tmp_path / "base"), {"fsync": str(fsync).lower()})
    storage.put_if_absent("p/q/create", b"1")
    storage.put("p/q/put", b"1")
    with storage.open_write("p/q/stream") as sink:
        sink.write(b"1")
    expected = ["mkdir", "fsync folder"] * 3
    expected += ["fsync file", "link", "fsync folder"]
    expected += ["fsync file", "replace", "fsync folder"]
    expected += ["fsync file", "link", "fsync folder"]
    assert calls == [call for call in expected if fsync or not call.startswith("fsync")]


KILLED = """
import os, sys
from hudi_table.table.store.opening import open_storage
storage = open_storage(sys.argv[1])
with storage.open_write("p/stream") as sink:
    sink.write(b"x" * (8 << 20))
    sink.flush()
    os.kill(os.getpid(), 9)
"""


def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "base")],
        check=False,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "spark_app")},
    )
    assert done.returncode == -9
    assert [path for path in (tmp_path / "base").rglob("*") if path.is_file()] == []


def test_a_folder_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    with storage.open_write("p/x") as sink:
        sink.write(b"1")
        (tmp_path / "p").rmdir()
    assert storage.get("p/x") == b"1"
    new = local_files.NewFile(str(tmp_path / "q" / "r" / "x"), fsync=True)
    shutil.rmtree(tmp_path / "q")
    # The content lives on without a folder; only its name needs one.
    new.publish()
    new.close()
    assert storage.get("q/r/x") == b""


def test_a_file_is_replaced_though_its_folder_is_removed_before_it_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = local_files.make_folder
    removed: list[str] = []

    def made_and_removed(path: str, *, fsync: bool) -> str:
        folder = made(path, fsync=fsync)
        if not removed:
            removed.append(folder)
            os.rmdir(folder)
        return folder

    monkeypatch.setattr(local_files, "make_folder", made_and_removed)
    storage = open_storage(str(tmp_path))
    storage.put("p/x", b"1")
    assert removed == [str(tmp_path / "p")]
    assert storage.get("p/x") == b"1"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("", "is not a location"),
        ("/", "root of the disk"),
        ("file:///", "root of the disk"),
        ("file://otherhost/path", "names the host 'otherhost'"),
        ("ftp://host/path", "scheme 'ftp'"),
        ("s3://", "names no bucket"),
        ("s3:///prefix", "names no bucket"),
        ("s3://key:secret@bucket/x", "never into the URI"),
        ("memory://m/a/../b", "'.' or '..' segment"),
        ("s3://bucket/a//b", "empty segment"),
    ],
)
def test_a_location_that_names_no_place_is_refused(uri: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        open_storage(uri)
    assert "secret" not in str(caught.value)


def test_spellings_of_a_path_are_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "a b%25é"
    open_storage(str(base)).put("x", b"1")
    monkeypatch.chdir(tmp_path)
    for uri in (f"{base}/", "a b%25é", base.as_uri(), f"file:{base.as_uri().removeprefix('file://')}"):
        storage = open_storage(uri)
        assert storage.get("x") == b"1"
        assert storage.base_path == str(base)


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="no option region"):
        open_storage(str(tmp_path), {"region": "x"})
    with pytest.raises(InvalidOptionError, match="neither 'true' nor 'false'"):
        open_storage(str(tmp_path), {"fsync": "maybe"})
    with pytest.raises(InvalidOptionError, match="takes no options"):
        open_storage("memory://m", {"fsync": "false"})


@pytest.mark.parametrize("change", ["put", "delete"])
def test_the_check_sums_of_hadoop_go_with_the_bytes_that_they_are_of(tmp_path: Path, change: str) -> None:
    storage = open_storage(str(tmp_path / "t"))
    storage.put("folder/file", b"1")
    storage.put("folder/.file.crc", b"of 1")
    storage.put("folder/.other.crc", b"of another")
    if change == "put":
        storage.put("folder/file", b"2")
    else:
        storage.delete("folder/file")
    left = {"folder/.other.crc"} | ({"folder/file"} if change == "put" else set())
    assert {info.path for info in storage.list("folder")} == left
