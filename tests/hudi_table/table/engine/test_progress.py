"""What operations say while they run and when they end: progress functions, and lines of
`logging`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvalidDataError
from hudi_table.metadata.port import open_context
from hudi_table.model.progress import Progress
from tests.support.aged import AgedStorage
from tests.support.written import INDEXES, contents, new_table, rows

FORCE = {"force": True}
T = TypeVar("T")
R = TypeVar("R")


def test_writes_and_services_tell_how_far_they_are() -> None:
    heard: list[Progress] = []
    table = new_table(type="MergeOnRead", index={"type": "Bucket", "buckets": 2})
    data = rows(*((f"k{n}", city, n) for n in range(9) for city in "xy"))
    table.upsert(data, progress=heard.append)
    assert heard[-1].operation == "upsert"
    assert heard[-1].done == heard[-1].total == 4
    assert Progress("upsert", 0, None) in heard, "rows are taken in from a stream of unknown length"
    table.upsert(data)
    heard.clear()
    table.compact(force=True, progress=heard.append)
    assert [(p.operation, p.done, p.total) for p in (heard[0], heard[-1])] == [
        ("compaction", 0, 4),
        ("compaction", 4, 4),
    ]
    heard.clear()
    table.doctor(progress=heard.append)
    assert (heard[-1].operation, heard[-1].done) == ("doctor", heard[-1].total)
    small = new_table()
    small.insert(rows(("a", "x", 1)))
    small.insert(rows(("b", "x", 1)), options={"hoodie.parquet.small.file.limit": "0"})
    heard.clear()
    small.cluster(force=True, progress=heard.append)
    assert heard == [Progress("clustering", 0, 1), Progress("clustering", 1, 1)]


class Elsewhere:
    """An engine of a caller, whose tasks may run in other processes."""

    parallelism = 2

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        return [function(item) for item in items]

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return map(function, items)


def test_an_engine_of_a_caller_tells_when_its_steps_begin_and_end() -> None:
    heard: list[Progress] = []
    table = new_table(type="MergeOnRead", index={"type": "Bucket", "buckets": 2})
    table.upsert(rows(("a", "x", 1), ("b", "y", 1)), engine=Elsewhere(), progress=heard.append)
    table.upsert(rows(("a", "x", 2), ("b", "y", 2)), engine=Elsewhere())
    assert heard[-1] == Progress("upsert", 2, 2)
    heard.clear()
    table.compact(force=True, engine=Elsewhere(), progress=heard.append)
    assert heard == [Progress("compaction", 0, 2), Progress("compaction", 2, 2)]
    assert contents(table) == [("a", "x", 2), ("b", "y", 2)]


def test_a_progress_function_that_fails_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[Progress] = []

    def fails(progress: Progress) -> None:
        calls.append(progress)
        raise RuntimeError("nobody looks")

    table = new_table()
    table.upsert(rows(("a", "x", 1)), progress=fails)
    assert contents(table) == [("a", "x", 1)]
    assert len(calls) == 1
    (record,) = (each for each in caplog.records if "is not called again" in each.getMessage())
    assert record.exc_info is not None, "why it failed is told"
    assert str(record.exc_info[1]) == "nobody looks"


def test_an_operation_is_one_line_with_counts_and_seconds(caplog: pytest.LogCaptureFixture) -> None:
    table = new_table()
    with caplog.at_level(logging.INFO, "hudi_table"):
        result = table.upsert(rows(("a", "x", 1), ("b", "y", 2)))
        table.upsert(rows(("a", "x", 3)))
        table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
        table.doctor()
    lines = [(record.name, record.getMessage()) for record in caplog.records]
    assert [name for name, _ in lines][:2] == ["hudi_table.write"] * 2
    assert {"hudi_table.doctor"} <= {name for name, _ in lines}
    assert re.fullmatch(
        rf"write of {re.escape(table.base_path)}: {result.instant}, rows_inserted=2, rows_written=2, .* in \d+\.\d{{3}} s",
        lines[0][1],
    )


@pytest.mark.parametrize("service", ["compaction", "clustering", "resizing", "clean", "archive", "doctor"])
def test_a_service_is_one_line_with_counts_and_seconds(service: str, caplog: pytest.LogCaptureFixture) -> None:
    index = INDEXES["bucket" if service == "resizing" else "simple"]
    table = new_table(index=index, type="MergeOnRead" if service == "compaction" else "CopyOnWrite")
    for number in range(6):
        kept_apart = {"hoodie.parquet.small.file.limit": "0"} if service == "clustering" else {}
        table.upsert(rows((f"k{number}" if service == "clustering" else "a", "x", number)), options=kept_apart)
    keep = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    works: dict[str, Callable[[], object]] = {
        "compaction": lambda: table.compact(force=True),
        "clustering": lambda: table.cluster(force=True),
        "resizing": lambda: table.resize_buckets(4),
        "clean": lambda: table.clean(keep, force=True),
        "archive": lambda: HudiTable(open_context(AgedStorage(table.context.storage))).archive(keep, force=True),
        "doctor": table.doctor,
    }
    # Another test of this process may have had all of the library logged, these writes too.
    caplog.clear()
    with caplog.at_level(logging.INFO, "hudi_table"):
        assert works[service]() or service == "doctor"
    told = [record for record in caplog.records if record.levelno >= logging.INFO]
    (line,) = [record.getMessage() for record in told if record.name.startswith("hudi_table")]
    assert re.fullmatch(rf"\w+ of {re.escape(table.base_path)}: .*\d.* in \d+\.\d{{3}} s", line)


def test_an_operation_that_is_refused_is_told_by_the_name_of_its_error(caplog: pytest.LogCaptureFixture) -> None:
    table = new_table()
    with caplog.at_level(logging.DEBUG, "hudi_table"), pytest.raises(InvalidDataError):
        table.upsert(rows(("", "x", 1)))
    said = [record.getMessage() for record in caplog.records if record.name == "hudi_table.write"]
    assert said[0].endswith("begins")
    assert re.search(r"ended in InvalidData after \d", said[-1])


def test_the_steps_of_a_write_and_of_what_it_asks_for_are_told_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    table = new_table(type="MergeOnRead")
    table.upsert(rows(("a", "x", 1), ("b", "x", 2)))
    table.build_metadata()
    table.upsert(rows(("a", "x", 3)))
    with caplog.at_level(logging.DEBUG, "hudi_table"):
        written = table.upsert(rows(("secret", "x", 4)))
        table.compact(force=True)
        contents(table)
    said = [(record.name.removeprefix("hudi_table."), record.getMessage()) for record in caplog.records]
    of_write = [
        (name, text.removeprefix(f"{written.instant}: ")) for name, text in said if text.startswith(written.instant)
    ]
    assert [(name, re.sub(r"\d+", "N", text)) for name, text in of_write] == [
        ("commit", "claimed, on a snapshot of N instants that completed"),
        ("write", "N rows taken in, in N tasks"),
        ("write", "N files written"),
        ("metadata", "N logs written to the metadata table"),
        ("commit", "commit decided, not published yet"),
        ("commit", "commit published"),
    ]
    assert any(name == "planning" and "planned at" in text for name, text in said)
    assert any(name == "rewriting" and text.endswith("1 tasks of the plan begin") for name, text in said)
    assert any(name == "read" and text.endswith(" file slices to read") for name, text in said)
    assert not any("secret" in text for _, text in said)
