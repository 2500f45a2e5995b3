"""Checkpoints of ingests from files: exact, bounded, independent of order and of clocks."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.model.job import checkpoint as model
from hudi_table.model.job.checkpoint import (
    Checkpoint,
    SourceFile,
    advance,
    batch_id,
    find,
    is_hidden,
    key_of,
    waiting,
    with_digest_file,
)

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def file(path: str, size: int = 1, version: str = "v", minutes: int = 0) -> SourceFile:
    return SourceFile(path, size, version, MOMENT + timedelta(minutes=minutes))


names = st.text(st.characters(exclude_characters="/_.", exclude_categories=["Cs"]), min_size=1, max_size=8)
files = st.lists(st.builds(file, names, st.integers(1, 9), st.sampled_from("ab"), st.integers(0, 99)), max_size=12)


@given(files, files)
def test_what_was_taken_does_not_wait_and_everything_else_does(taken: list[SourceFile], rest: list[SourceFile]) -> None:
    held = advance(None, "feed", "a", tuple(taken), taken)
    left = waiting([*taken, *rest], held)
    assert {f.digest for f in left} == {f.digest for f in rest} - {f.digest for f in taken}


@given(files, files)
def test_nothing_is_forgotten_over_batches_and_text(one: list[SourceFile], two: list[SourceFile]) -> None:
    first = Checkpoint.from_text(advance(None, "feed", "a", tuple(one), one).to_text())
    second = Checkpoint.from_text(advance(first, "feed", "b", tuple(two), two).to_text())
    assert not waiting([*one, *two], second)


@given(files)
def test_a_batch_is_the_same_in_any_order(found: list[SourceFile]) -> None:
    assert batch_id("feed", found) == batch_id("feed", reversed(found))
    assert batch_id("feed", found) != batch_id("other", found)


def test_an_older_file_that_comes_late_waits() -> None:
    held = advance(None, "feed", "a", (file("b", minutes=9),), ())
    assert waiting([file("a", minutes=1), file("b", minutes=9)], held) == (file("a", minutes=1),)


def test_a_file_of_another_size_or_version_waits_again() -> None:
    held = advance(None, "feed", "a", (file("a"),), ())
    assert waiting([file("a", size=2)], held)
    assert waiting([file("a", version="w")], held)
    assert not waiting([file("a", minutes=5)], held)


@pytest.mark.parametrize("path", ["_SUCCESS", ".a", "a/_temporary/b", "a/.b/c"])
def test_hidden_files_are_no_data(path: str) -> None:
    assert is_hidden(path)
    assert not waiting([file(path)], None)


def test_files_come_oldest_first() -> None:
    found = [file("b", minutes=1), file("c"), file("a", minutes=1)]
    assert [f.path for f in waiting(found, None)] == ["c", "a", "b"]


def test_past_the_bound_only_files_that_left_the_source_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "CONSUMED_MAX", 3)
    monkeypatch.setattr(model, "RECENT_MAX", 3)
    old = tuple(file(str(i)) for i in range(3))
    held = advance(None, "feed", "a", old, old)
    held = advance(held, "feed", "b", (file("new"),), [old[0], file("new")])
    assert not waiting([old[0], file("new")], held)
    assert len(held.consumed) == 2


def through(checkpoint: Checkpoint, store: dict[str, bytes]) -> Checkpoint:
    """The checkpoint as the next job finds it."""
    found = with_digest_file(checkpoint, "feed")
    if found is not None:
        checkpoint, data = found
        assert checkpoint.digest_file is not None
        store[checkpoint.digest_file.path] = data
    again = Checkpoint.from_text(checkpoint.to_text(), store.__getitem__)
    assert again.consumed == checkpoint.consumed
    return again


@given(st.lists(st.integers(1, 4), max_size=12))
def test_nothing_is_forgotten_and_no_commit_grows_however_many_files_were_consumed(batches: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "RECENT_MAX", 5)
        held: Checkpoint | None = None
        listing: list[SourceFile] = []
        store: dict[str, bytes] = {}
        for size in batches:
            batch = tuple(file(f"{len(listing) + i}") for i in range(size))
            listing += batch
            held = through(advance(held, "feed", "a", batch, listing), store)
            assert not waiting(listing, held)
            assert waiting([*listing, file("late", minutes=-9)], held)
            assert len(base64.b64decode(json.loads(held.to_text())["consumed"])) <= 8 * 5
        assert all(path.startswith(".hoodie/.ingest/feed/") for path in store)


@pytest.mark.parametrize("data", [b"", b"12345678", b"1234567"])
def test_a_file_of_settled_digests_that_is_another_is_told(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "RECENT_MAX", 0)
    found = with_digest_file(advance(None, "feed", "a", (file("a"),), ()), "feed")
    assert found is not None
    with pytest.raises(ValueError, match="refers to 1 digests"):
        Checkpoint.from_text(found[0].to_text(), lambda path: data)


def test_a_commit_names_at_most_so_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "NAMED_FILES_MAX", 2)
    document = json.loads(advance(None, "feed", "a", tuple(file(str(i)) for i in range(5)), ()).to_text())
    assert (document["fileCount"], len(document["files"])) == (5, 2)


def test_a_commit_without_a_checkpoint_has_none() -> None:
    assert find({}, "feed") is None
    held = advance(None, "feed", "a", (file("a"),), ())
    assert find({key_of("feed"): held.to_text()}, "feed") == held


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"format": 2}',
        '{"format": 3}',
        '{"format": 1, "batch": "", "attempt": "", "files": [], "consumed": "AA=="}',
    ],
)
def test_a_damaged_checkpoint_is_no_checkpoint(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        Checkpoint.from_text(text)
