"""Archive files: those of Hudi are read and written again byte for byte; damage is named.

Aspects: the golden archive; the same instants archived by us; damage. Not here: which instants are
archived.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import open_table
from hudi_table.codec.archive_entries import Entry, encode_entries, read_entries
from hudi_table.codec.log.blocks import SCHEMA, BlockType, encode_block, scan_blocks
from hudi_table.errors import CorruptTableError
from hudi_table.services.archiving.records import entry_of
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archive_files, archived_entries
from tests.support.golden import Golden, unpack


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    return unpack("arch", tmp_path_factory.mktemp("golden"))


def archive_of(golden: Golden) -> bytes:
    (path,) = (golden.base / ".hoodie" / "archived").glob(".commits_.archive*")
    return path.read_bytes()


def contents(data: bytes) -> list[bytes]:
    blocks = scan_blocks(io.BytesIO(data))
    return [data[block.content_offset : block.content_offset + block.content_length] for block in blocks]


def without_comments(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: without_comments(value) for key, value in schema.items() if key != "doc"}
    return [without_comments(item) for item in schema] if isinstance(schema, list) else schema


def test_an_archive_of_hudi_is_read_and_written_again_byte_for_byte(golden: Golden) -> None:
    data = archive_of(golden)
    entries = list(read_entries(data, path="golden"))
    assert len(entries) == 30
    assert {entry["actionType"] for entry in entries} == {"commit", "clean"}
    pairs = [encode_entries(entries[at : at + 2]) for at in range(0, len(entries), 2)]
    assert [content for block in pairs for content in contents(block)] == contents(data)
    for mine, theirs in zip(pairs, scan_blocks(io.BytesIO(data)), strict=True):
        (block,) = scan_blocks(io.BytesIO(mine))
        assert json.loads(block.schema or "") == without_comments(json.loads(theirs.schema or ""))
        assert block.header.keys() == theirs.header.keys() == {SCHEMA}


def shape(value: Any) -> Any:
    """What is there and what is null, without the values that differ from instant to instant."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return value if value in (None, "", "null", "UPSERT", "UNKNOWN", "KEEP_LATEST_COMMITS") else type(value).__name__


def test_what_we_archive_of_an_instant_is_what_hudi_archives(golden: Golden) -> None:
    """Of each action and state: the later instants of the same table, which Hudi had not archived
    yet."""
    ctx = open_table(str(golden.base)).context
    timeline = load_timeline(ctx)
    theirs: dict[tuple[str, str], list[Entry]] = {}
    for entry in (entry for entries in archived_entries(ctx) for entry in entries):
        theirs.setdefault((entry["actionType"], entry["actionState"]), []).append(entry)

    def bodies(name: str) -> bytes:
        return ctx.storage.get(f".hoodie/{name}")

    met = set()
    for state in (state for states in timeline.states().values() for state in states):
        entry = entry_of(ctx, timeline, state, bodies)
        (mine,) = read_entries(encode_entries([entry]), path="mine")
        kind = (mine["actionType"], mine["actionState"])
        met.add(kind)
        assert comparable(mine) in [comparable(other) for other in theirs[kind]], kind
    assert met == theirs.keys()


def comparable(entry: Entry) -> Any:
    partitions = ("filePathsToBeDeletedPerPartition", "partitionMetadata")
    return {
        key: {inner: shape(item) for inner, item in value.items() if inner not in partitions}
        if isinstance(value, dict)
        else shape(value)
        for key, value in entry.items()
    }


def test_a_table_of_hudi_tells_what_it_archived_as_its_history(golden: Golden) -> None:
    table = open_table(str(golden.base))
    found = table.timeline(archived=True)
    times = found["instant"].to_pylist()
    assert times == sorted(times)
    assert len(times) == len(set(times)) == 10 + len(load_timeline(table.context).instants)
    assert set(found["state"].to_pylist()) == {"completed"}
    history = table.history(archived=True)
    assert (
        history["instant"].to_pylist()
        == [time for time, action in zip(times, found["action"].to_pylist(), strict=True) if action == "commit"][::-1]
    )
    assert history["rows"].to_pylist() == [3] * len(history)
    assert history["operation"].unique().to_pylist() == ["UPSERT"]
    past = open_table(str(golden.base), as_of=times[4]).timeline(archived=True)["instant"].to_pylist()
    assert past == times[:5]


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_torn_archive_file_is_named(golden: Golden, cut: int) -> None:
    with pytest.raises(CorruptTableError, match="golden"):
        list(read_entries(archive_of(golden)[:cut], path="golden"))


@pytest.mark.parametrize("content", [b"", b"\0\0\0\3\0\0\0\2", b"\0\0\0\1\0\0\0\0", b"\0\0\0\3\0\0\0\1\0\0\0\x7f"])
def test_a_block_with_other_content_is_named(golden: Golden, content: bytes) -> None:
    schema = scan_blocks(io.BytesIO(archive_of(golden)))[0].schema or ""
    with pytest.raises(CorruptTableError, match="some file"):
        list(read_entries(encode_block(BlockType.AVRO, {SCHEMA: schema}, content), path="some file"))
    with pytest.raises(CorruptTableError, match="some file"):
        list(read_entries(encode_block(BlockType.DELETE, {}, content), path="some file"))


def test_archive_files_are_ordered_by_their_number(tmp_path: Path) -> None:
    base = unpack("arch", tmp_path).base
    folder = base / ".hoodie" / "archived"
    (folder / ".commits_.archive.10_1-0-1").write_bytes((folder / ".commits_.archive.4_1-0-1").read_bytes())
    (folder / ".commits_.archive.9_1-0-1").write_bytes((folder / ".commits_.archive.4_1-0-1").read_bytes())
    (folder / "mergeArchivePlan.tmp").write_bytes(b"")
    table = open_table(str(base))
    assert [file.number for file in archive_files(table.context)] == [4, 9, 10]
    assert table.timeline(archived=True).num_rows == 10 + len(load_timeline(table.context).instants)
    (folder / ".commits_.archive.10_1-0-1").write_bytes(b"")
    with pytest.raises(CorruptTableError, match=r"archive\.10_1-0-1 has no bytes: what it held of the history is lost"):
        table.timeline(archived=True)
