"""Changes whose files are gone are refused by name, and begun anew only if asked; and what else
`changes` takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import CorruptTableError, ExpiredError, InvalidOptionError
from hudi_table.model.table.cdc import CDC_ENABLED, CDC_MODE
from tests.support import golden

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


def new_table(base: Path, logged: str | None = None, **more: Any) -> HudiTable:
    """Three commits on one bucket: two inserts, an update with an insert, a delete."""
    options = {} if logged is None else {CDC_ENABLED: "true", CDC_MODE: logged}
    asked: dict[str, Any] = {"record_key": "id", "index": {"type": "Bucket", "buckets": 1}, "options": options}
    asked["version"] = 6
    table = create_table(base, SCHEMA, **(asked | more))
    table.upsert(rows("a", "b"))
    table.upsert(rows("b", "c", n=2))
    table.delete(rows("a").select(["id"]))
    return table


def rows(*keys: str, n: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "n": [n] * len(keys)}, SCHEMA)


def ops(changes: Any) -> list[tuple[str, str]]:
    return [(row["op"], (row["after"] or row["before"])["id"]) for row in changes.to_arrow().to_pylist()]


def instants(table: HudiTable) -> list[str]:
    return [row["instant"] for row in table.timeline().to_pylist() if row["action"] in ("commit", "deltacommit")][-3:]


def clean_before(table: HudiTable, base: Path, instant: str) -> None:
    """What a cleaner deletes that keeps the newest slice before `instant` and all after it."""
    for path in base.glob("0*.parquet"):
        if path.name[-25:-8] < instant:
            path.unlink()
    for path in base.glob(".*.cdc"):
        if path.name.split("_")[1][:17] < instant:
            path.unlink()


SERVICES = {"cluster", "compact", "log_compact"}
EVERYTHING = [("i", "a"), ("i", "b"), ("u", "b"), ("i", "c"), ("d", "a")]


@pytest.mark.parametrize("logged", [None, "op_key_only", "data_before", "data_before_after"])
def test_changes_whose_files_were_cleaned_name_the_instant_and_begin_anew_if_asked(
    tmp_path: Path, logged: str | None
) -> None:
    table = new_table(tmp_path / "t", logged)
    first, second, _ = instants(table)
    assert ops(table.changes()) == EVERYTHING
    clean_before(table, tmp_path / "t", second)
    with pytest.raises(
        ExpiredError, match=f"the changes of {first} can no longer be determined: .* was cleaned"
    ) as refused:
        table.changes().to_arrow()
    assert refused.value.instant == first
    assert ops(table.changes(second)) == EVERYTHING[4:]
    # The update needs the file before it, unless its images were logged.
    if logged in ("data_before", "data_before_after"):
        assert ops(table.changes(first)) == EVERYTHING[2:]
    else:
        with pytest.raises(ExpiredError, match=f"the changes of {second} can no longer be determined"):
            table.changes(first).to_arrow()
        anew = table.changes(full_scan=True).to_arrow().to_pylist()
        assert [(row["op"], row["after"]["id"]) for row in anew[:3]] == [("i", "a"), ("i", "b"), ("i", "c")]
        assert {row["ts_ms"] for row in anew[:3]} == {second}
        assert [(row["op"], row["before"]) for row in anew[3:]] == [("d", {"id": "a", "n": 1})]
    assert ops(table.changes(second, full_scan=True)) == EVERYTHING[4:], "nothing is added where nothing is missing"


def test_changes_of_logs_are_refused_when_their_slice_was_cleaned(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", type="MergeOnRead")
    _, second, _ = instants(table)
    assert ops(table.changes()) == EVERYTHING
    (log,) = (path for path in (tmp_path / "t").glob(".*.log.1_*"))
    (base,) = (path for path in (tmp_path / "t").glob("0*.parquet"))
    for path in (base, log):
        # A cleaner that stopped between the two is noticed, too.
        path.unlink()
        for since in (instants(table)[0], second):
            with pytest.raises(ExpiredError, match=r"can no longer be determined: \.?0.* was cleaned"):
                table.changes(since).to_arrow()


def test_a_replaced_group_that_was_cleaned_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    kept = set((tmp_path / "t").glob("0*.parquet"))
    since = instants(table)[2]
    found = table.write(rows("z"), operation="insert_overwrite_table")
    assert ops(table.changes(since)) == [("d", "b"), ("d", "c"), ("i", "z")]
    newest = max(kept, key=lambda path: path.name[-25:])
    newest.unlink()
    with pytest.raises(ExpiredError, match=rf"{newest.name} was cleaned"):
        table.changes(since).to_arrow()
    for path in kept - {newest}:
        path.unlink()
    with pytest.raises(ExpiredError, match=f"the changes of {found.instant} can no longer be determined"):
        table.changes(since).to_arrow()
    assert ops(table.changes(since, full_scan=True)) == [("i", "z")]


def test_changes_of_the_archived_part_are_refused_and_begin_anew_if_asked(tmp_path: Path) -> None:
    table = golden.unpack("arch", tmp_path)
    opened = open_table(str(table.base))
    with pytest.raises(ExpiredError, match="archived"):
        opened.changes().to_arrow()
    seen = opened.changes(full_scan=True).to_arrow().to_pylist()
    state: dict[str, Any] = {}
    for change in seen:
        if change["before"] is not None:
            assert state.pop(change["before"]["id"]) == change["before"]
        if change["after"] is not None:
            state[change["after"]["id"]] = change["after"]
    assert state == {row["id"]: row for row in opened.scan().to_arrow().to_pylist()}


@pytest.mark.parametrize("name", [*golden.COPY_ON_WRITE, *golden.MERGE_ON_READ])
def test_the_changes_of_every_golden_table_make_its_rows(name: str, tmp_path: Path) -> None:
    table = open_table(str(golden.unpack(name, tmp_path).base))
    if not table.context.config.populate_meta_fields:
        with pytest.raises(InvalidOptionError, match="no meta columns"):
            table.changes().to_arrow()
        return
    keys = table.context.config.record_key
    state: dict[Any, Any] = {}
    changes = table.changes(full_scan=True).to_arrow().to_pylist()
    history = {row["instant"]: row["operation"] for row in table.history().to_pylist()}
    # A full scan may begin with any commit, after that services change nothing.
    assert not {history[row["ts_ms"]].lower() for row in changes if row["ts_ms"] > changes[0]["ts_ms"]} & SERVICES
    for change in changes:
        before, after = change["before"], change["after"]
        if before is not None:
            assert state.pop(tuple(before[key] for key in keys)) == before, change
        if after is not None:
            assert state.setdefault(tuple(after[key] for key in keys), after) == after, change
    assert state == {tuple(row[key] for key in keys): row for row in table.scan().to_arrow().to_pylist()}


def test_images_have_the_columns_that_were_asked_for_and_come_as_often_as_wanted(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "data_before_after")
    changes = table.changes(columns=["n"])
    assert changes.schema.field("after").type == pa.struct([("n", pa.int64())])
    assert [row["after"] for row in changes.to_arrow().to_pylist()] == [{"n": 1}, {"n": 1}, {"n": 2}, {"n": 2}, None]
    assert pa.table(changes).equals(pa.table(changes))
    assert [len(table.changes(limit=count).to_arrow()) for count in (0, 1, 3, 99)] == [0, 1, 3, 5]
    assert ops(open_table(str(tmp_path / "t"), as_of=instants(table)[1]).changes()) == EVERYTHING[:4]


def test_old_changes_come_in_the_columns_of_today(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "data_before_after")
    wider = pa.table({"id": ["b"], "n": [7], "more": ["new"]})
    table.upsert(wider)
    last = table.changes().to_arrow().to_pylist()
    assert [row["after"] for row in last[2:4]] == [{"id": "b", "n": 2, "more": None}, {"id": "c", "n": 2, "more": None}]
    assert last[-1]["before"] == {"id": "b", "n": 2, "more": None}
    assert last[-1]["after"] == {"id": "b", "n": 7, "more": "new"}


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda t: t.changes(images="all"), "images is 'all': use one of op_key_only"),
        (lambda t: t.changes(columns="n"), "give a list"),
        (lambda t: t.changes(columns=["n", "n"]), "twice"),
        (lambda t: t.changes(columns=["m"]).to_arrow(), "no column 'm'"),
        (lambda t: t.changes(limit=-1), "limit is -1"),
        (lambda t: t.changes("20260102", "20260101"), "is after until"),
    ],
)
def test_what_is_asked_wrongly_is_refused_by_name(tmp_path: Path, ask: Callable[[HudiTable], Any], what: str) -> None:
    with pytest.raises(InvalidOptionError, match=what):
        ask(new_table(tmp_path / "t"))


def test_a_damaged_change_log_is_an_error_that_names_it(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "data_before_after")
    log = min((tmp_path / "t").glob(".*.cdc"))
    log.write_bytes(log.read_bytes()[:-3])
    with pytest.raises(CorruptTableError, match=r"\.cdc holds no change data"):
        table.changes().to_arrow()
