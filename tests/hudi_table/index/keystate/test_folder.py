"""The folder in which a key state outlives its process: whatever befalls it, a successor is late
and not wrong.

Matrix: {a death, a full disk} × {copy-on-write, merge-on-read} at each call that writes it, each
file of it damaged, two processes at once, a copy of a process, rights, folders that nobody uses.

Omitted: processes that are really killed (`test_deaths.py`), what a successor reads
(`test_saved.py`).
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.index.keystate import folder as folders
from hudi_table.index.keystate import runs
from hudi_table.index.keystate import state as states
from hudi_table.index.keystate.folder import UNUSED_SECONDS, Folder
from hudi_table.index.keystate.state import forget_states
from hudi_table.model.table.index_properties import STATE_FOLDER
from tests.hudi_table.index.keystate.test_index import APART, BOTH, begun, opened_files
from tests.hudi_table.index.keystate.test_saved import (
    MOVED,
    MOVES,
    elsewhere,
    folder_of,
    kept,
    left_by_a_predecessor,
    new_process,
    read_by_a_successor,
)
from tests.support.written import contents, last_commit, new_table, rows, slices

__all__ = ["new_process"]


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/*") if path.name != "lock")


class Death(BaseException):
    """The process ends here: nothing that it would still do is done."""


class Disk:
    """What writes to the folder, of which call number `room` fails: as the end of the process, or
    once as a full disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, dies: bool) -> None:
        self.left, self.dies, self.dead = 1 << 30, dies, False
        for place in (runs, folders):
            monkeypatch.setattr(place, "open", self.open, raising=False)
        for name in ("replace", "unlink", "mkdir", "chmod"):
            monkeypatch.setattr(Path, name, self.met(getattr(Path, name)))

    def meet(self) -> None:
        self.left -= 1
        if self.dead or self.left == -1:
            self.dead = self.dies
            raise Death if self.dies else OSError(errno.ENOSPC, "No space left on device")

    def met(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            self.meet()
            return plain(*arguments, **more)

        return call

    def open(self, *arguments: Any, **more: Any) -> Any:
        self.meet()
        return Torn(open(*arguments, **more), self)

    def mend(self) -> None:
        self.left, self.dead = 1 << 30, False


class Torn:
    """A file of which a call that fails writes a part."""

    def __init__(self, inner: Any, disk: Disk) -> None:
        self.inner, self.disk = inner, disk

    def __enter__(self) -> Torn:
        return self

    def __exit__(self, *_: object) -> None:
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, data: Any) -> None:
        try:
            self.disk.meet()
        except BaseException:
            self.inner.write(bytes(data)[: len(bytes(data)) // 2])
            raise
        self.inner.write(data)


@pytest.mark.thinned("values")
@BOTH
@pytest.mark.parametrize("dies", [True, False], ids=["death", "full disk"])
def test_an_end_at_any_call_that_writes_the_folder_costs_a_successor_time_and_no_row(
    kind: str, dies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Callable[[int, str], None]
) -> None:
    monkeypatch.setattr(runs, "HELD_ENTRIES", 1)
    disk, room = Disk(monkeypatch, dies=dies), 0
    while True:
        disk.mend()
        folder = tmp_path / str(room)
        table = left_by_a_predecessor(folder, kind, count=3)
        table.upsert(rows(("k1", "z", 7)), options=APART)
        forget_states()
        disk.left = room
        try:
            table.upsert(rows(("k0", "y", 10), ("n", "z", 1)), options=kept(folder))
            table.upsert(rows(("k1", "x", 11), ("n", "x", 2)), options=kept(folder))
        except Death:
            pass
        ended = disk.left >= 0
        disk.mend()
        forget_states()
        stored = contents(table)
        assert len({row[0] for row in stored}) == len(stored), f"room for {room} calls"
        assert dies or stored == [("k0", "y", 10), ("k1", "x", 11), ("k2", "z", 2), ("n", "x", 2)]
        now = [(key, "zyx"["xyz".index(city)], value + 1) for key, city, value in stored]
        table.upsert(rows(*now), options=kept(folder))
        assert contents(table) == now, f"room for {room} calls"
        assert not read_by_a_successor(table, folder), "the successor has left a state that is whole"
        if ended:
            break
        room += 1
    figure(room, "calls that write a key state and fail")
    assert room > 20


def bytes_flipped(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    for at in {0, len(data) // 2, len(data) - 1}:
        yield data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_state_of_which_any_file_is_damaged_is_read_anew(tmp_path: Path, figure: Callable[[int, str], None]) -> None:
    table, folder, damages = left_by_a_predecessor(tmp_path / "good"), tmp_path / "bad", 0
    for path in files_of(tmp_path / "good"):
        data = path.read_bytes()
        for damaged in [*bytes_flipped(path), data[:-1], data + b"\0", b"", None]:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(tmp_path / "good", folder)
            victim = folder / path.relative_to(tmp_path / "good")
            victim.unlink() if damaged is None else victim.write_bytes(damaged)
            damages += 1
            stored = {each.base.name for each in slices(table) if each.base is not None}
            assert read_by_a_successor(table, folder, f"n{damages}") == stored, f"{path.name} damaged"
            table.upsert(rows(("k1", "xyz"[damages % 3], damages)), options=kept(folder))
            assert [row for row in contents(table) if row[0] == "k1"] == [("k1", "xyz"[damages % 3], damages)]
    figure(damages, "damaged files of a key state")
    assert damages >= 4 * 6
    forget_states()
    assert len(files_of(folder)) < 12, "what nobody needs is gone"


def test_whoever_dies_after_a_state_could_not_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = left_by_a_predecessor(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "replace", full)
        table.upsert(rows(("k0", "x", 7)), options=kept(tmp_path))
    news = {stat.path.rpartition("/")[2] for stat in last_commit(table).stats}
    assert read_by_a_successor(table, tmp_path) == news


def test_anything_of_it_may_be_removed_while_a_process_has_it(tmp_path: Path) -> None:
    table, many = left_by_a_predecessor(tmp_path), 100
    table.upsert(rows(*((f"m{number}", "x", 0) for number in range(many))), options=kept(tmp_path))
    for number, victim in enumerate(["*/state", "*/*.high", "*/*.low", "*/*.number", "*/lock", "*/*", "*"]):
        table.upsert(rows(("k0", "xy"[number % 2], number)), options=kept(tmp_path))
        for path in list(tmp_path.glob(victim)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        table.upsert(rows(("k1", "yx"[number % 2], number)), options=kept(tmp_path))
        table.upsert(rows(("k2", "zx"[number % 2], number)), options=kept(tmp_path))
        assert not read_by_a_successor(table, tmp_path, victim), victim
        assert len(contents(table)) == 7 + many + number


def test_a_process_that_names_another_folder_leaves_its_state_there_and_lets_the_first_go(tmp_path: Path) -> None:
    table = left_by_a_predecessor(tmp_path / "first")
    table.upsert(rows(("k0", "x", 1)), options=kept(tmp_path / "first"))
    table.upsert(rows(("k1", "y", 2)), options=kept(tmp_path / "second"))
    with elsewhere():
        news = {stat.path.rpartition("/")[2] for stat in last_commit(table).stats}
        assert read_by_a_successor(table, tmp_path / "first") == news
    table.upsert(rows(("k2", "x", 3)), options=kept(tmp_path / "second"))
    assert not read_by_a_successor(table, tmp_path / "second", "another")


def test_a_second_process_begins_with_its_own_and_leaves_that_of_the_first_alone(tmp_path: Path) -> None:
    table = left_by_a_predecessor(tmp_path)
    table.upsert(rows(("k0", "x", 1)), options=kept(tmp_path))
    before = {path: path.read_bytes() for path in files_of(tmp_path)}
    with elsewhere():
        read = opened_files(table, lambda t: t.upsert(rows(("k1", "y", 2)), options=kept(tmp_path)))
        assert len(set(read)) == 6
        assert {path: path.read_bytes() for path in files_of(tmp_path)} == before
        ours = dict(states._STATES)
        states._STATES.clear()
    forget_states()
    states._STATES.update(ours)
    table.upsert(rows(("k2", "x", 3)), options=kept(tmp_path))
    assert not read_by_a_successor(table, tmp_path), "the second one has left its own once the first was gone"


def test_a_copy_of_a_process_leaves_its_folder_alone(tmp_path: Path) -> None:
    table = left_by_a_predecessor(tmp_path)
    table.upsert(rows(("k0", "x", 1)), options=kept(tmp_path))
    child = os.fork()
    if child == 0:
        os._exit(any(state.folder is not None for state in states._STATES.values()))
    assert os.waitpid(child, 0)[1] == 0
    assert all(state.folder is not None for state in states._STATES.values())
    with elsewhere():
        assert Folder.taken(tmp_path, next(tmp_path.iterdir()).name.removeprefix(folders.PREFIX)) is None


def test_a_folder_is_for_its_user_alone_and_one_that_others_may_write_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = left_by_a_predecessor(tmp_path)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    folder.chmod(0o770)
    assert not read_by_a_successor(table, tmp_path), "a volume for a group gives the group all rights"
    assert folder.stat().st_mode & 0o077 == 0
    folder.chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert len(read_by_a_successor(table, tmp_path, "another")) == 7
    assert f"is no folder of this user alone: '{folder}'; see to the folder of {STATE_FOLDER}" in caplog.text


def test_states_that_nobody_has_used_for_a_week_go_and_others_stay(tmp_path: Path) -> None:
    old, used = left_by_a_predecessor(tmp_path), left_by_a_predecessor(tmp_path)
    held = begun()
    held.upsert(rows(("k0", "x", 0)), options=kept(tmp_path))
    place = folder_of(held, tmp_path)
    for path in tmp_path.glob("*/*"):
        moment = path.stat().st_mtime - UNUSED_SECONDS - 60
        if path.parent == place or path.parent == folder_of(old, tmp_path):
            os.utime(path, (moment, moment))
    (tmp_path / "mine").write_text("something else")
    left_by_another = begun()
    left_by_another.upsert(rows(("k0", "x", 0)), options=kept(tmp_path))
    left = {path for path in tmp_path.iterdir() if path.is_dir()}
    assert left == {place, folder_of(used, tmp_path), folder_of(left_by_another, tmp_path)}
    assert (tmp_path / "mine").read_text() == "something else"


def test_what_lies_there_is_bounded_by_the_keys_however_often_they_are_written(tmp_path: Path) -> None:
    table = new_table(index="KeyState", type="MergeOnRead")
    count = 2000
    for number in range(12):
        items = ((f"key-{key}", "xyz"[(key + number) % 3], number) for key in range(count))
        table.upsert(rows(*items), options=kept(tmp_path))
    assert sum(path.stat().st_size for path in files_of(tmp_path)) < 20 * count * 8
    assert len(files_of(tmp_path)) < 20


@pytest.mark.parametrize(("folder", "words"), [("state", "is no absolute path"), ("./state", "name a folder")])
def test_a_folder_that_is_no_absolute_path_is_refused(folder: str, words: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"option {STATE_FOLDER}={folder} .*{words}"):
        new_table(index="KeyState").upsert(rows(("a", "x", 1)), options={STATE_FOLDER: folder})


def test_a_folder_that_cannot_be_made_is_warned_of_and_the_write_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    table = begun()
    with caplog.at_level(logging.WARNING):
        table.upsert(rows(*MOVES), options=kept(tmp_path / "file" / "state"))
    assert contents(table) == MOVED
    assert "is not kept for a successor" in caplog.text
