"""`hudictl checkpoint set` of ingests that read no stream: what was set is gone on from, whoever
did it stands in the commit, and what its source would not take is refused before anything is
written."""

from __future__ import annotations

import json
import os
import pwd
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hudi_table import create_table, open_table, write_hudi
from hudi_table.cli.program import main as hudictl
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.marks import Mark
from hudi_table.model.names import STREAMER_KEY
from hudi_table.model.timeline.instants import Instant
from hudi_table.services.setting_checkpoints.audit import SET_KEY
from hudi_table.sources.checkpoints import current_checkpoint, held_any, held_mark, held_upstream
from hudi_table.sources.custom import GROUP
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support import polled
from tests.support.index_package import written_package
from tests.support.polled import Polled


@dataclass
class Asked:
    """What `hudictl checkpoint set` has said."""

    code: int
    said: str


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    with written_package(tmp_path / "package", "lines_package", polled.PACKAGE, "lines = lines_package:Lines", GROUP):
        yield


def changed(feed: Polled, capsys: pytest.CaptureFixture[str], text: str, *more: str, name: str = "feed") -> Asked:
    capsys.readouterr()
    code = hudictl(["checkpoint", "set", feed.location, name, text, *more])
    return Asked(code, capsys.readouterr().err)


def instants(feed: Polled) -> int:
    return len(load_timeline(open_table(feed.location).context).commits)


def audit(feed: Polled) -> dict[str, Any]:
    context = open_table(feed.location).context
    newest = commit_metadata(context, load_timeline(context).commits[-1])
    found: dict[str, Any] = json.loads(newest.extra_metadata[SET_KEY])
    return found


def test_a_package_goes_on_at_the_position_that_was_set(
    tmp_path: Path, package: None, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = polled.of_package(tmp_path)
    feed.put(range(10))
    assert feed.run().outcome == "Succeeded"
    before, count = held_any(open_table(feed.location).context, "feed"), instants(feed)
    assert before is not None
    refused = changed(feed, capsys, "lines 3")
    assert (refused.code, instants(feed)) == (1, count), refused.said
    assert "whether '3' lies before '10' only the package knows" in refused.said
    assert "give --yes" in refused.said
    assert changed(feed, capsys, "other 3", "--yes").said.count("is of source 'lines', and not of 'other'") == 1
    assert changed(feed, capsys, "lines", "--yes").said.count("is not of the form NAME POSITION") == 1
    assert instants(feed) == count
    assert changed(feed, capsys, "lines 7", "--yes").code == 0
    found = audit(feed)
    assert (found["ingest"], found["before"]) == ("feed", before[1].checkpoint.to_text())
    assert found["by"]
    assert feed.run().figures["recordsInserted"] == 3
    assert feed.numbers() == [*range(7), 7, 7, 8, 8, 9, 9], "it inserts without looking for keys"


def test_a_statement_goes_on_at_the_value_that_was_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = polled.of_statement(tmp_path)
    feed.put(range(10))
    assert feed.run().outcome == "Succeeded"
    table = open_table(feed.location)
    table.delete(polled.rows_of(range(10)))
    assert feed.run().outcome == "NothingToDo"
    count = instants(feed)
    for text, said in (
        ("n soon", "'soon' is neither a whole number nor a date or time"),
        ("n 2026-01-01", "the checkpoint holds '9', which is of another type than '2026-01-01'"),
        ("id 5", "the ingest goes by column 'n', and not by 'id'"),
        ("5", "is not of the form COLUMN VALUE"),
    ):
        refused = changed(feed, capsys, text)
        assert (refused.code, said in refused.said) == (1, True), refused.said
    unknown = changed(feed, capsys, "n 5", "--type", "Jdbc")
    assert "is of type Sql, and not of type Jdbc" in unknown.said
    assert instants(feed) == count
    assert changed(feed, capsys, "n 6").code == 0
    assert feed.run().figures["recordsInserted"] == 4
    assert feed.numbers() == [6, 7, 8, 9]


def test_an_ingest_without_a_checkpoint_begins_at_what_was_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = polled.of_folder(tmp_path)
    create_table(feed.location, polled.SCHEMA, record_key="id").upsert(polled.rows_of([1]))
    done = changed(feed, capsys, "updated_at 2026-01-31 12:00:00+00", "--type", "Jdbc", name="orders")
    assert (done.code, "it had no checkpoint before" in done.said) == (0, True), done.said
    held = held_mark(open_table(feed.location).context, "orders")
    assert held is not None
    assert (held.checkpoint.column, held.checkpoint.value) == ("updated_at", "2026-01-31 12:00:00+00")
    text = open_table(feed.location).context
    newest = commit_metadata(text, load_timeline(text).commits[-1]).extra_metadata[key_of("orders")]
    assert Mark.from_text(newest) == held.checkpoint
    refused = changed(feed, capsys, "orders,0:7", name="orders")
    assert (refused.code, "is not of the form COLUMN VALUE" in refused.said) == (1, True)
    lacks = changed(feed, capsys, "n 5", name="other")
    assert lacks.code == 1, "no text of a stream"


def test_files_before_a_moment_count_as_taken_and_the_others_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = polled.of_folder(tmp_path)
    landing = tmp_path / "landing"
    for number in range(4):
        feed.put([number])
        new = max(landing.glob("*.parquet"), key=lambda path: path.stat().st_ctime_ns)
        at = datetime(2026, 1, 1 + number, tzinfo=UTC).timestamp()
        os.utime(new, (at, at))
    assert feed.run().figures["filesConsumed"] == 4
    count, of = instants(feed), ("--of", str(landing))
    for text, more, said in (
        ("before 2026-01-03T00:00:00Z", (), "which files those are only their folder tells: give it (--of"),
        ("before 2026-01-03", of, "is not of the form before MOMENT"),
        ("2026-01-03T00:00:00Z", of, "is not of the form before MOMENT"),
        ("before 2026-01-03T00:00:00Z", of, "2 files that are in the table would wait again"),
    ):
        refused = changed(feed, capsys, text, *more)
        assert (refused.code, said in refused.said) == (1, True), refused.said
    assert instants(feed) == count
    assert changed(feed, capsys, "before 2026-01-03T00:00:00Z", *of, "--yes").code == 0
    held = current_checkpoint(open_table(feed.location).context, "feed")
    assert held is not None
    assert len(held.consumed) == 2
    assert feed.run().figures["filesConsumed"] == 2
    assert feed.numbers() == [0, 1, 2, 2, 3, 3]
    assert changed(feed, capsys, "before 2027-01-01T00:00:00Z", *of).code == 0, "forward nothing is taken twice"


def following(tmp_path: Path, version: int) -> tuple[Polled, list[str]]:
    """What follows a table of three commits, the numbers 0, 1 and 2, and the instants of these."""
    above = create_table(str(tmp_path / "above"), polled.SCHEMA, record_key="id", version=version)
    for number in range(3):
        above.upsert(polled.rows_of([number]))
    feed = Polled(tmp_path / "work", {"type": "Hudi", "hudi": {"location": f"file://{tmp_path}/above"}}, lambda _: None)
    feed.folder.mkdir()
    return feed, [each.time for each in load_timeline(above.context).commits][-3:]


def test_another_table_is_gone_on_from_a_commit_that_its_timeline_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed, times = following(tmp_path, 9)
    assert feed.run().outcome == "Succeeded"
    open_table(feed.location).delete(polled.rows_of(range(3)))
    count, of = instants(feed), ("--of", f"file://{tmp_path}/above")
    for text, more, said in (
        (times[0], (), "give its location (--of"),
        ("20200101000000000", of, "has no completed commit '20200101000000000'"),
        (f"other {times[0]}", of, "is called above, and not other"),
    ):
        refused = changed(feed, capsys, text, *more)
        assert (refused.code, said in refused.said) == (1, True), refused.said
    assert instants(feed) == count
    assert changed(feed, capsys, f"above {times[0]}", *of).code == 0
    held = held_upstream(open_table(feed.location).context, "feed")
    assert held is not None
    assert held.checkpoint.instant == times[0]
    assert feed.run().outcome == "Succeeded"
    assert feed.numbers() == [1, 2]


def taken_by_streamer(feed: Polled, numbers: list[int], checkpoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a job of Hudi Streamer has taken, and where it stands."""
    table = create_table(feed.location, polled.SCHEMA, record_key="id")
    write_hudi(table, polled.rows_of(numbers), extra_metadata={STREAMER_KEY: checkpoint})
    capsys.readouterr()
    assert hudictl(["checkpoint", "show", feed.location, "-o", "json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["items"]
    assert (shown["source"], shown["checkpoint"]) == ("HudiStreamer", checkpoint)


def test_an_ingest_goes_on_behind_what_a_job_of_hudi_streamer_took_of_another_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed, times = following(tmp_path, 6)
    taken_by_streamer(feed, [0], times[0], capsys)
    assert changed(feed, capsys, times[0], "--of", f"file://{tmp_path}/above", "--type", "Hudi").code == 0
    assert feed.run().outcome == "Succeeded"
    assert feed.numbers() == [0, 1, 2]
    assert sum(open_table(feed.location).history()["updated"].to_pylist()) == 0, "nothing came twice"


def test_an_ingest_goes_on_behind_what_a_job_of_hudi_streamer_took_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = polled.of_folder(tmp_path)
    landing = tmp_path / "landing"
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(4):
        feed.put([number])
        new = max(landing.glob("*.parquet"), key=lambda path: path.stat().st_ctime_ns)
        os.utime(new, ns=2 * (int((begin + timedelta(days=number)).timestamp()) * 10**9,))
    # Its checkpoint is when the newest file that it has taken was last changed, in milliseconds.
    newest = begin + timedelta(days=1)
    taken_by_streamer(feed, [0, 1], f"{newest.timestamp() * 1000:.0f}", capsys)
    moment = (newest + timedelta(milliseconds=1)).isoformat()
    assert changed(feed, capsys, f"before {moment}", "--of", str(landing), "--type", "Files").code == 0
    assert feed.run().figures["filesConsumed"] == 2
    assert feed.numbers() == [0, 1, 2, 3]


def test_what_belongs_to_set_is_refused_beside_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = polled.of_folder(tmp_path)
    create_table(feed.location, polled.SCHEMA, record_key="id").upsert(polled.rows_of([1]))
    assert hudictl(["checkpoint", "show", feed.location, "--of", "x"]) == 2
    assert "belong to checkpoint set" in capsys.readouterr().err


def shown(feed: Polled, capsys: pytest.CaptureFixture[str], *verb: str) -> dict[str, Any]:
    """The first row that a verb prints."""
    capsys.readouterr()
    assert hudictl([*verb, feed.location, "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["items"][0]
    return found


def test_who_has_set_a_checkpoint_is_shown_also_when_the_ingest_has_gone_on(
    tmp_path: Path, package: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = polled.of_package(tmp_path)
    feed.put(range(10))
    feed.run()
    before = shown(feed, capsys, "checkpoint", "show")
    assert [before[name] for name in ("setBy", "setInstant", "setBefore")] == [None, None, None]
    # What the environment says is not what the process is.
    monkeypatch.setenv("LOGNAME", "somebody")
    assert changed(feed, capsys, "lines 7", "--yes").code == 0
    by = f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"
    instant = load_timeline(open_table(feed.location).context).commits[-1].time
    assert shown(feed, capsys, "timeline")["checkpointSet"] == f"feed by {by}"
    assert feed.run().figures["recordsInserted"] == 3
    after = shown(feed, capsys, "checkpoint", "show")
    assert (after["checkpoint"], after["setBy"], after["setInstant"], after["setBefore"]) == (
        "lines 10",
        by,
        instant,
        "lines 10",
    )


def test_a_user_without_an_entry_sets_one_too(
    tmp_path: Path, package: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = polled.of_package(tmp_path)
    feed.put(range(10))
    feed.run()
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 98_765)
    assert changed(feed, capsys, "lines 7", "--yes").code == 0
    assert audit(feed)["by"] == f"uid 98765@{socket.gethostname()}"


def test_an_ingest_goes_on_where_it_was_in_a_commit_that_is_named(
    tmp_path: Path, package: None, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = polled.of_package(tmp_path)
    times = []
    for begin in (0, 10, 20):
        feed.put(range(begin, begin + 10))
        assert feed.run().outcome == "Succeeded"
        times.append(load_timeline(open_table(feed.location).context).commits[-1].time)

    def goes_back(*more: str) -> Asked:
        capsys.readouterr()
        code = hudictl(["checkpoint", "set", feed.location, "feed", *more])
        return Asked(code, capsys.readouterr().err)

    unknown = goes_back("--from-commit", "20200101000000000")
    assert unknown.code == 1
    assert f"has none of ingest 'feed': the newest that do are {times[-1]}, " in unknown.said
    assert times[0] in unknown.said
    assert "--from-commit INSTANT in place of OFFSETS" in goes_back("lines 3", "--from-commit", times[0]).said
    assert "give --yes" in goes_back("--from-commit", times[0]).said
    done = goes_back("--from-commit", times[0], "--yes")
    assert (done.code, "feed goes on at lines 10" in done.said) == (0, True), done.said
    assert feed.run().figures["recordsInserted"] == 20


@pytest.mark.parametrize("version", [6, 9])
def test_a_checkpoint_that_is_archived_is_shown_and_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: int
) -> None:
    base = str(tmp_path / "t")
    table = create_table(base, polled.SCHEMA, record_key="id", version=version)
    table.upsert(polled.rows_of([1]))
    assert hudictl(["checkpoint", "set", base, "old", "orders,0:7"]) == 0
    for number in range(8):
        table.upsert(polled.rows_of([number]))
        assert hudictl(["checkpoint", "set", base, "feed", f"clicks,0:{number}"]) == 0
    for path in (tmp_path / "t" / ".hoodie").rglob("*"):
        os.utime(path, (path.stat().st_atime - 7200, path.stat().st_mtime - 7200))
    kept = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    options = [word for name, value in kept.items() for word in ("--option", f"{name}={value}")]
    assert hudictl(["archive", base, "--yes", "--now", *options]) == 0
    held = [key for each in load_timeline(open_table(base).context).commits for key in extra(base, each)]
    assert key_of("old") not in held
    assert all_shown(capsys, base) == {"feed": "clicks,0:7", "old": "orders,0:7"}
    assert all_shown(capsys, base, "old") == {"old": "orders,0:7"}
    assert all_shown(capsys, base, "other") == {}
    assert hudictl(["checkpoint", "set", base, "old", "orders,0:9"]) == 0
    assert "it had no checkpoint" not in capsys.readouterr().err
    assert all_shown(capsys, base) == {"feed": "clicks,0:7", "old": "orders,0:9"}


def extra(base: str, instant: Instant) -> list[str]:
    return list(commit_metadata(open_table(base).context, instant).extra_metadata)


def all_shown(capsys: pytest.CaptureFixture[str], base: str, *more: str) -> dict[str, str]:
    capsys.readouterr()
    assert hudictl(["checkpoint", "show", base, *more, "-o", "json"]) == 0
    return {
        each["ingest"]: each["checkpoint"] for each in json.loads(capsys.readouterr().out)["items"] if each["ingest"]
    }
