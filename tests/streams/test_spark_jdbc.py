"""Rows of a real PostgreSQL read in tasks of Spark: the table is the one that a single process
makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import open_table
from tests.support.databases import POSTGRES, Database
from tests.support.postgres import PASSWORD, USER, Server, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_postgres() as found:
        yield found


def pair(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Database, Database]:
    """Ingests of one table of the database: by one process, and by tasks."""
    monkeypatch.setenv("DATABASE_USERNAME", USER)
    monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
    here = Database(server, POSTGRES, folder / "here")
    tasks = Database(server, POSTGRES, folder / "tasks", name=here.name, engine="Spark")
    for each in (here, tasks):
        each.folder.mkdir()
    return here, tasks


def test_parts_are_read_in_tasks_and_make_the_table_of_one_process(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, tasks = pair(server, tmp_path, monkeypatch)
    here.do(
        "create table $t (id int, at timestamptz, price numeric(12,3), d date, tags text[], j jsonb)",
        "insert into $t select i, '2026-01-01Z'::timestamptz + i * interval '1 s', i / 8.0, '2026-01-01', '{a,b}', '{\"a\": 1}'"
        " from generate_series(1, 3000) i",
        "insert into $t values (0, null, null, null, null, null)",
    )
    split = {"column": "id", "parts": 3}
    for _ in range(2):
        grows: dict[str, Any] = {"incremental": {"column": "at", "lag": 5}, "split": split}
        assert here.good(**grows).figures["rowsRead"] == tasks.good(**grows).figures["rowsRead"]
        mine, other = (open_table(each.location).scan().to_arrow().sort_by("id") for each in (here, tasks))
        meta = [name for name in mine.column_names if name.startswith("_hoodie_")]
        assert other.drop_columns(meta).equals(mine.drop_columns(meta))
        assert tasks.run(**grows).outcome == "NothingToDo"
        here.do(
            "insert into $t select i, '2026-01-01Z'::timestamptz + i * interval '1 s' from generate_series(2999, 3100) i"
        )
    work = {"transform": [{"sql": "SELECT id, upper(CAST(j AS string)) AS j FROM source"}]}
    fresh = Database(server, POSTGRES, tmp_path / "fresh", name=here.name, engine="Spark")
    fresh.folder.mkdir()
    assert fresh.good(work=work, filter="id < 10").figures["recordsInserted"] == 10


def test_tasks_keep_the_same_rows_apart_as_one_process(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, tasks = pair(server, tmp_path, monkeypatch)
    here.do(
        "create table $t (id int, at timestamptz, n int)",
        "insert into $t select i, '2026-01-01Z'::timestamptz + i * interval '1 s', i % 100 from generate_series(1, 1000) i",
    )
    work = {"expectations": [{"name": "some", "sql": "n > 0", "onFail": "Quarantine"}], "maxErrorRatio": 0.01}
    for each in (here, tasks):
        done = each.good(work=work, split={"column": "id", "parts": 3}, incremental={"column": "at"})
        assert (done.figures["rowsRead"], done.figures["recordsRefused"]) == (1000, 10)
    mine, other = (
        open_table(f"{each.location}_row_errors").scan(["id", "place", "rule", "reason", "value"]).to_arrow()
        for each in (here, tasks)
    )
    assert other.sort_by("id").equals(mine.sort_by("id"))
    assert len(tasks.rows("id")) == 990
