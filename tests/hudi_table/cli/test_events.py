"""`hudictl events` and `hudictl wait`: what they print, where to go on, and exit codes."""

from __future__ import annotations

import json
import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import create_table, open_table
from hudi_table.callbacks import waiting
from hudi_table.callbacks.commits import commits_after
from hudi_table.callbacks.kinds import CommitKind
from hudi_table.callbacks.waiting import commits_since, wait_for_commit
from hudi_table.cli import exits, main
from hudi_table.errors import InvalidOptionError, TableNotFoundError

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})


@pytest.fixture
def base(tmp_path: Path) -> str:
    made = create_table(str(tmp_path / "flights"), ROWS.schema, record_key="id", version=6)
    made.upsert(ROWS)
    made.upsert(ROWS)
    return str(tmp_path / "flights")


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = exits.GOOD) -> tuple[str, str]:
    """(what was printed, the position to go on with)."""
    assert main([*arguments]) == code
    out = capsys.readouterr()
    found = re.search(r"go on with --since (\S+)", out.err)
    return out.out, found[1] if found else ""


def items(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["items"]
    return found


def test_events_go_on_where_they_ended(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed, position = run(capsys, "events", base, "-o", "json")
    assert [each["operation"] for each in items(printed)][1:] == ["UPSERT", "UPSERT"]
    assert [each["rowsUpdated"] for each in items(printed)][1:] == [0, 2]
    assert items(printed)[-1]["position"] == position
    assert items(run(capsys, "events", base, "--since", position, "-o", "json")[0]) == []
    open_table(base).upsert(ROWS)
    assert len(items(run(capsys, "events", base, "--since", position, "-o", "json")[0])) == 1
    first = items(printed)[0]["instant"]
    assert len(items(run(capsys, "events", base, "--since", first, "-o", "json")[0])) == 3


def test_a_limit_cuts_and_the_position_goes_on_behind_it(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    found: list[str] = []
    position = "earliest"
    for _ in range(3):
        printed, position = run(capsys, "events", base, "--since", position, "--limit", "1", "-o", "json")
        found += [each["instant"] for each in items(printed)]
    assert found == [i.time for i in timeline(base)]


def timeline(base: str) -> Any:
    from hudi_table.table.timeline.active import load_timeline

    return load_timeline(open_table(base).context).commits


def test_cloud_events_are_lines_of_json(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed, _ = run(capsys, "events", base, "--cloudevents")
    events = [json.loads(line) for line in printed.splitlines()]
    assert [event["specversion"] for event in events] == ["1.0"] * 3
    assert events[-1]["data"]["rowsUpdated"] == 2
    assert events[-1]["source"] == base


def test_a_table_for_eyes_has_a_line_for_each_commit(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "events", base)[0].splitlines()
    assert lines[0].split()[:4] == ["INSTANT", "ACTION", "OPERATION", "COMPLETED"]
    assert len(lines) == 4


def test_wait_returns_at_once_where_something_has_come(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = timeline(base)[0].time
    printed, position = run(capsys, "wait", base, "--since", first, "-o", "json")
    assert len(items(printed)) == 2
    printed, again = run(
        capsys, "wait", base, "--since", position, "--timeout", "0.2", "--poll", "0.1", code=exits.TIMED_OUT
    )
    assert (printed, again) == ("", "")


def test_wait_is_woken_by_a_commit(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, position = run(capsys, "events", base)
    writer = threading.Timer(0.5, lambda: open_table(base).upsert(ROWS))
    writer.start()
    printed, _ = run(capsys, "wait", base, "--since", position, "--timeout", "60", "--poll", "0.1", "-o", "json")
    writer.join()
    assert len(items(printed)) == 1


def test_wait_waits_for_a_table_that_is_not_there_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = str(tmp_path / "later")
    said = ("--timeout", "0.2", "--poll", "0.1")
    assert main(["wait", later, "--since", "earliest", *said]) == exits.TIMED_OUT
    assert f"no table lies at {later} yet: waiting for it" in capsys.readouterr().err
    assert wait_for_commit(later, "earliest", timeout=0.2, poll=0.1) is None
    with pytest.raises(InvalidOptionError, match="since 'yesterday' is no position"):
        wait_for_commit(later, "yesterday", timeout=0.2)
    with pytest.raises(TableNotFoundError):
        commits_since(later, "earliest")

    def made() -> None:
        create_table(later, ROWS.schema, record_key="id").upsert(ROWS)

    writer = threading.Timer(0.5, made)
    writer.start()
    printed, _ = run(capsys, "wait", later, "--since", "earliest", "--timeout", "60", "--poll", "0.1", "-o", "json")
    writer.join()
    assert items(printed)


def test_wait_looks_through_all_that_is_there_before_its_time_ends(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(base)
    for _ in range(3):
        table.cluster(force=True)
    table.upsert(ROWS)
    begin = timeline(base)[2].moment
    monkeypatch.setattr(waiting, "commits_after", partial(commits_after, limit=1))
    found = wait_for_commit(base, begin, timeout=0)
    assert found is not None
    assert [told.commit.kind for told in found.told] == [CommitKind.WRITE]


def test_a_sensor_asks_once_and_goes_on(base: str) -> None:
    page = commits_since(base, "earliest")
    assert len(page.told) == 3
    assert commits_since(base, str(page.position)).told == ()
    assert wait_for_commit(base, str(page.position), timeout=0.1, poll=0.05) is None
    open_table(base).upsert(ROWS)
    found = wait_for_commit(base, str(page.position), timeout=0.1)
    assert found is not None
    assert len(found.told) == 1
    with pytest.raises(InvalidOptionError, match="poll is 0: give seconds"):
        wait_for_commit(base, "earliest", poll=0)


@pytest.mark.parametrize("timeout", ["0", "-1", "x", "inf", "nan"])
def test_a_time_that_is_none_is_refused(base: str, timeout: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wait", base, "--since", "earliest", "--timeout", timeout]) == exits.USAGE
    assert "is no number of seconds above 0" in capsys.readouterr().err


def test_a_position_that_is_none_is_refused(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", base, "--since", "yesterday"]) == exits.USAGE
    assert "since 'yesterday' is no position" in capsys.readouterr().err
