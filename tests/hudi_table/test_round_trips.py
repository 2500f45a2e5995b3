"""How many requests an operation sends to an object store, and how many of them one after the
other: exact counts.

Tables of 4 partitions × 2 buckets, each operation by a new handle. On table version 9 each listing
of the timeline is two requests, at once. A count that changes is a change
of what users wait for: say it in docs/explanation/performance.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.arguments import TableTypeName
from tests.support.s3 import S3Server
from tests.support.waves import Requests, Waves, running_waves

pytestmark = pytest.mark.s3

ROWS, UPDATED = 16_000, 800
"""So many that base files are larger than the end of a file that a reader asks for first."""


@dataclass(frozen=True, slots=True)
class Store:
    """A server that counts."""

    server: S3Server
    waves: Waves
    version: int

    def listings(self, count: int) -> int:
        """Requests of so many listings of the timeline: of version 9 the folder around it is one of
        its own."""
        return count if self.version == 6 else 2 * count

    def table(self, kind: TableTypeName, *, partitions: int = 4, buckets: int = 2, logs: int = 0) -> str:
        """A new table with a base file in each bucket and `logs` logs of each."""
        uri = self.server.new_uri()
        table = create_table(
            uri,
            rows(1).schema,
            record_key="id",
            partition_by="p",
            ordering_fields="ts",
            type=kind,
            index={"type": "Bucket", "buckets": buckets},
            storage_options=self.server.options,
            version=self.version,
        )
        table.write(rows(ROWS, partitions=partitions), operation="bulk_insert")
        for number in range(logs):
            table.upsert(rows(UPDATED, version=number + 1))
        return uri

    def opened(self, uri: str) -> HudiTable:
        """By a new handle."""
        return open_table(uri, storage_options=self.server.options)

    def counted(self, uri: str, act: Callable[[HudiTable], object]) -> Requests:
        """The requests of `act` on a new handle."""
        with self.waves.counted() as requests:
            act(self.opened(uri))
        return requests


def rows(count: int, *, version: int = 0, partitions: int = 4) -> pa.Table:
    """Rows of the keys from the first on; their text compresses badly."""
    texts = random.Random(version)
    return pa.table(
        {
            "id": [f"k{number:07}" for number in range(count)],
            "p": [f"p{number % partitions:02}" for number in range(count)],
            "ts": pa.array([version] * count, pa.int64()),
            "text": [texts.randbytes(32).hex() for _ in range(count)],
        }
    )


@pytest.fixture(scope="module", params=[6, 9])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with running_waves() as (server, waves):
        yield Store(server, waves, request.param)


@pytest.fixture(scope="module")
def logged(store: Store) -> str:
    """A merge-on-read table with three logs in each file group."""
    return store.table("MergeOnRead", logs=3)


@pytest.fixture(scope="module")
def rewritten(store: Store) -> str:
    """A copy-on-write table of more commits than archiving leaves."""
    uri = store.table("CopyOnWrite")
    store.opened(uri).upsert(rows(UPDATED, version=1))
    return uri


def test_a_scan_of_copy_on_write_waits_five_times(store: Store, rewritten: str) -> None:
    found = store.counted(rewritten, lambda table: table.scan().to_arrow())
    # Properties and their copy; timeline; commit, guard, properties, folders; 4 partitions; 8 files.
    assert (found.total, found.in_sequence) == (2 + store.listings(1) + 4 + 4 + 8, 5), found


def test_a_scan_of_logs_waits_no_more(store: Store, logged: str) -> None:
    found = store.counted(logged, lambda table: table.scan().to_arrow())
    assert (found.total, found.in_sequence) == (2 + store.listings(1) + 4 + 4 + 8 * 4, 5), found


def test_one_key_opens_the_files_of_its_bucket_at_once(store: Store, logged: str) -> None:
    found = store.counted(logged, lambda table: table.scan(filter="id = 'k0000005' and p = 'p01'").to_arrow())
    assert (found.total, found.in_sequence) == (2 + store.listings(1) + 4 + 4 + 4, 5), found


def test_a_scan_of_a_few_rows_fetches_the_files_of_one_slice_at_a_time(store: Store, logged: str) -> None:
    found = store.counted(logged, lambda table: table.scan(limit=10).to_arrow())
    assert (found.total, found.in_sequence) == (2 + store.listings(1) + 4 + 4 + 4, 5), found


def test_a_small_file_is_read_by_one_request_and_of_a_large_one_first_the_end(store: Store) -> None:
    large = store.server.new_uri()
    table = create_table(large, rows(1).schema, record_key="id", storage_options=store.server.options)
    table.write(rows(2 * ROWS), operation="bulk_insert")
    found = store.counted(large, lambda table: table.scan().to_arrow())
    ranges = [(request.wave, request.key.rpartition(" ")[2]) for request in found.sent if ".parquet" in request.key]
    assert ranges[0] == (4, "bytes=-65536"), found
    assert found.in_sequence == 5, found


def test_the_columns_of_a_large_file_are_asked_for_at_once(store: Store) -> None:
    """Each is larger than what a small read brings along."""
    uri = store.server.new_uri()
    first = rows(ROWS)
    more = {
        name: [f"{number * 7919:032}"[::-1] + text for number, text in enumerate(first["text"].to_pylist())]
        for name in "abcdef"
    }
    wide = pa.table(
        {"id": first["id"], **{name: random.Random(name).sample(texts, ROWS) for name, texts in more.items()}}
    )
    table = create_table(uri, wide.schema, record_key="id", storage_options=store.server.options)
    table.write(wide, operation="bulk_insert")
    found = store.counted(uri, lambda table: table.scan(columns=["a", "c", "e"]).to_arrow())
    ranges = [request for request in found.sent if ".parquet" in request.key]
    assert [request.wave for request in ranges] == [4, 5, 5, 5], found
    assert found.in_sequence == 5, found


@pytest.mark.parametrize(
    ("kind", "partitions", "buckets", "total", "in_sequence"),
    [
        ("MergeOnRead", 4, 2, 29, 12),
        ("CopyOnWrite", 4, 2, 37, 13),
        ("MergeOnRead", 16, 4, 97, 13),
        ("CopyOnWrite", 16, 4, 161, 15),
    ],
)
def test_an_upsert(
    store: Store, kind: TableTypeName, partitions: int, buckets: int, total: int, in_sequence: int
) -> None:
    """Of 64 file groups 32 are under way at once: two waves of logs, of base files four."""
    uri = store.table(kind, partitions=partitions, buckets=buckets)
    new = rows(UPDATED, version=1, partitions=partitions)
    found = store.counted(uri, lambda table: table.upsert(new))
    assert (found.total, found.in_sequence) == (total - 3 + store.listings(3), in_sequence), found
    assert found.by_method()["PUT"] == partitions * buckets + 6, "claim, inflight, two of markers, decision, commit"
    table = store.opened(uri)
    assert table.scan(columns=["id"]).to_arrow().num_rows == ROWS
    assert table.scan(filter="ts = 1").count() == UPDATED


def test_an_upsert_beside_older_commits_waits_no_more(store: Store, logged: str) -> None:
    """That the timeline was whole is confirmed while its commits and partitions are read."""
    found = store.counted(logged, lambda table: table.upsert(rows(UPDATED, version=4)))
    assert (found.total, found.in_sequence) == (26 + store.listings(3) + 2, 12), found


def test_a_compaction_of_eight_file_groups(store: Store) -> None:
    """Planned, decided, executed and committed. The files that a plan is made of are listed
    once."""
    uri = store.table("MergeOnRead", logs=3)
    found = store.counted(uri, lambda table: table.compact(force=True))
    assert (found.total, found.in_sequence) == (80 + store.listings(5), 20), found
    assert store.opened(uri).scan(filter="ts = 3").count() == UPDATED
    assert not [row for row in store.opened(uri).files().to_pylist() if row["latest"] and row["log_files"]]


@pytest.mark.parametrize("service", ["compact", "clean", "archive"])
def test_a_service_with_nothing_to_do_lists_the_timeline_once(store: Store, service: str) -> None:
    """Nor does it look whether that listing was whole, beside three commits: what it lacks, the
    next look finds."""
    uri = store.table("MergeOnRead", logs=2)
    found = store.counted(uri, lambda table: getattr(table, service)())
    assert (found.total, found.in_sequence) == (2 + store.listings(1), 2), found
