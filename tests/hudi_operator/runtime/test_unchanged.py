"""A look at a table where nothing has happened is one request; whatever has happened is seen by the
next look.

Omitted: what a look finds (`test_observe.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_operator.api.resources import desired_table
from hudi_operator.plan.observed import Problem, TableObservation
from hudi_operator.runtime import observe
from hudi_operator.runtime.observe import Observer
from hudi_operator.runtime.observing.unchanged import SECONDS_MAX, Look
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.transaction import begin
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.properties import replace_properties
from tests.support.manifests import manifest, stored
from tests.support.meanwhile import Sleeper
from tests.support.s3 import S3Server
from tests.support.tables import memory_storage
from tests.support.waves import Waves, running_waves

ROWS = pa.table({"id": ["a", "b", "c"], "day": ["x", "x", "y"]})


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[S3Server, Waves]]:
    with running_waves() as found:
        yield found


def made(uri: str, options: dict[str, str] | None = None, version: int | None = None) -> HudiTable:
    table = create_table(
        uri, ROWS.schema, record_key="id", partition_by="day", type="MergeOnRead", storage_options=options,
        index={"type": "Bucket", "buckets": 2}, version=version,
    )  # fmt: skip
    for _ in range(4):
        table.upsert(ROWS)
    return table


def look(observer: Observer, uri: str, server: S3Server | None = None) -> TableObservation:
    options = server.options if server is not None else {}
    storage = {name: options[name] for name in ("endpoint", "region") if name in options}
    secret = {name.upper(): value for name, value in options.items() if name not in storage}
    fields: dict[str, Any] = {"storage": storage} if storage else {}
    document = stored(manifest(location=uri, recordKey=["id"], **fields))
    found = observer.table(desired_table(document), secret)
    assert isinstance(found, TableObservation), found
    return found


@pytest.mark.s3
@pytest.mark.parametrize(("version", "total"), [(6, 1), (9, 2)])
def test_a_look_at_an_unchanged_table_waits_once(store: tuple[S3Server, Waves], version: int, total: int) -> None:
    server, waves = store
    uri = server.new_uri()
    table, observer = made(uri, server.options, version), Observer(SystemClock())
    first = look(observer, uri, server)
    with waves.counted() as requests:
        second = look(observer, uri, server)
    assert (requests.total, requests.in_sequence) == (total, 1), requests
    assert second == first
    table.upsert(ROWS)
    assert look(observer, uri, server).last_write != first.last_write
    with waves.counted() as requests:
        look(observer, uri, server)
    assert (requests.total, requests.in_sequence) == (total, 1), requests


def upserts(table: HudiTable) -> None:
    table.upsert(ROWS.slice(0, 1))


def begins(table: HudiTable) -> None:
    begin(table.context, Action.DELTA_COMMIT)


def compacts(table: HudiTable) -> None:
    table.compact(force=True)


def cleans(table: HudiTable) -> None:
    table.compact(force=True)
    table.clean({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})


def restores(table: HudiTable) -> None:
    kept = table.savepoint()
    table.upsert(ROWS)
    table.restore(kept.instant, writers_stopped=True)


def renames(table: HudiTable) -> None:
    replace_properties(table.context, {"hoodie.datasource.write.drop.partition.columns": "true"})


@pytest.mark.parametrize("happens", [upserts, begins, compacts, cleans, restores, renames])
def test_what_has_happened_is_seen_by_the_next_look(tmp_path: Path, happens: Callable[[HudiTable], object]) -> None:
    uri = f"file://{tmp_path}/t"
    made(uri)
    observer = Observer(SystemClock())
    before = look(observer, uri)
    assert look(observer, uri) == before
    happens(open_table(uri))
    found = look(observer, uri)
    assert found == look(Observer(SystemClock()), uri)
    assert found != before


def test_what_nothing_tells_of_is_seen_after_a_while(tmp_path: Path) -> None:
    uri, clock = f"file://{tmp_path}/t", Sleeper()
    made(uri)
    observer = Observer(clock)
    before = look(observer, uri)
    for path in (tmp_path / "t" / "y").iterdir():
        path.unlink()
    assert look(observer, uri) == before
    clock.slept += SECONDS_MAX + 1
    assert look(observer, uri) != before


def test_a_look_that_lists_the_timeline_again_gets_nothing_from_before_that() -> None:
    store = memory_storage()
    store.put(".hoodie/hoodie.properties", b"1")
    look = Look(store, SystemClock(), None)
    look.list_dir(".hoodie")
    assert look.get(".hoodie/hoodie.properties") == b"1"
    store.put(".hoodie/hoodie.properties", b"2")
    assert look.get(".hoodie/hoodie.properties") == b"1"
    look.list_dir(".hoodie")
    assert look.get(".hoodie/hoodie.properties") == b"2"


def test_a_timeline_in_a_folder_of_its_own_tells_too() -> None:
    """That of newer table versions."""
    store, clock = memory_storage(), SystemClock()
    store.put(".hoodie/hoodie.properties", b"1")
    store.put(".hoodie/timeline/1.commit", b"")
    store.put("x/file", b"1")
    look = Look(store, clock, None)
    assert look.get("x/file") == b"1"
    store.put("x/file", b"2")
    again = Look(store, clock, look.answers)
    assert (again.get("x/file"), again.list_dir(".hoodie/timeline")) == (b"1", store.list_dir(".hoodie/timeline"))
    store.put(".hoodie/timeline/2.commit", b"")
    assert Look(store, clock, look.answers).get("x/file") == b"2"


def test_one_url_at_two_endpoints_is_two_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made(str(tmp_path / "one"))
    shutil.copytree(whole.base_path, tmp_path / "two")
    for path in (tmp_path / "two" / ".hoodie" / "timeline").glob("*.deltacommit"):
        path.write_text("damaged there alone")
    places = {f"http://{name}:9000": name for name in ("one", "two")}

    def opened(uri: str, options: Mapping[str, str]) -> Storage:
        assert uri == "s3://lake/flights"
        return open_storage(str(tmp_path / places[options["endpoint"]]))

    monkeypatch.setattr(observe, "open_storage", opened)
    observer, secret = Observer(SystemClock()), {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    first, second = (
        observer.table(
            desired_table(stored(manifest(location="s3://lake/flights", recordKey=["id"], storage={"endpoint": at}))),
            secret,
        )
        for at in places
    )
    assert isinstance(first, TableObservation)
    assert isinstance(second, Problem), "what was read at the other endpoint says nothing of it"
    assert second.reason == "CorruptTable"
