"""Another table version in the local runtime: real jobs on a real merge-on-read table, there and
back, and a change that was left half-way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from hudi_table.errors import UnsupportedTableError
from hudi_table.table.version_change import NOTE, VersionChange
from tests.hudi_operator.runtime.test_local_services import ROWS, Lake, conditions


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path)
    found.make()
    found.log()
    return found


def version(lake: Lake) -> int:
    return open_table(str(lake.location)).context.config.version


def rows(lake: Lake) -> pa.Table:
    return open_table(str(lake.location)).scan(ROWS.column_names).to_arrow().sort_by("id")


def upgrade(lake: Lake, to: int, **table: Any) -> dict[str, Any]:
    """Planned, shown, approved and done; the plan that was."""
    asked: dict[str, Any] = {"type": "Upgrade", "mode": "Plan", "upgrade": {"to": to}}
    plan: dict[str, Any] = lake.apply(lake.table(**table), lake.service(**asked))[1]["status"]["plan"]
    assert version(lake) != to
    _, done = lake.apply(lake.table(**table), lake.service(**asked, approve=plan["digest"]))
    assert (done["status"]["phase"], done["status"]["lastPlan"]["digest"]) == ("Succeeded", plan["digest"]), done
    return plan


def test_a_table_goes_to_another_version_and_back_and_its_rows_stay(lake: Lake) -> None:
    before = rows(lake)
    plan = upgrade(lake, 9, readers=[{"engine": "Hudi", "version": "1.1"}])
    assert (plan["why"], plan["fileGroups"]) == ("the table has version 6, 9 is asked for", 1)
    assert "1 slice with logs merged first" in plan["details"]
    assert (version(lake), rows(lake)) == (9, before)
    (kept,) = open_table(str(lake.location)).savepoints()
    assert kept.comment == "before table version 9"
    lake.log(ts=200)
    before = rows(lake)
    plan = upgrade(lake, 6)
    assert f"goes: savepoint {kept.instant} (before table version 9)" in plan["details"]
    assert (version(lake), rows(lake)) == (6, before)
    (table,) = lake.apply(lake.table())
    assert (table["status"]["tableVersion"], conditions(table)["Ready"][0]) == (6, "True")
    lake.log(ts=300)
    assert rows(lake)["ts"].to_pylist()[0] == 300


def test_a_plan_names_the_reader_that_it_loses_and_its_approval_is_refused(lake: Lake) -> None:
    named = [{"engine": "Hudi", "version": "0.15"}]
    asked: dict[str, Any] = {"type": "Upgrade", "mode": "Plan", "upgrade": {"to": 9}}
    plan = lake.apply(lake.table(readers=named), lake.service(**asked))[1]["status"]["plan"]
    assert plan["details"][0].startswith("could no longer read it: Hudi 0.15 cannot read table version 9")
    _, refused = lake.apply(lake.table(readers=named), lake.service(**asked, approve=plan["digest"]))
    assert conditions(refused)["Stalled"][1] == "InvalidSpec"
    assert version(lake) == 6


def test_a_change_that_was_left_half_way_is_told_and_given_up(lake: Lake) -> None:
    (lake.location / NOTE).parent.mkdir()
    (lake.location / NOTE).write_bytes(VersionChange(6, 9).to_json())
    (table,) = lake.apply(lake.table())
    assert conditions(table)["Upgrading"][:2] == ("True", "HalfWay")
    with pytest.raises(UnsupportedTableError, match="is being brought from version 6 to 9"):
        lake.log()
    asked: dict[str, Any] = {"type": "Upgrade", "mode": "Plan", "upgrade": {"to": 6}}
    plan = lake.apply(lake.table(), lake.service(**asked))[1]["status"]["plan"]
    assert "approve this only once the process that began it has ended" in plan["details"][0]
    table, done = lake.apply(lake.table(), lake.service(**asked, approve=plan["digest"]))
    assert done["status"]["phase"] == "Succeeded"
    (table,) = lake.apply(lake.table())
    assert "Upgrading" not in conditions(table)
    lake.log(ts=200)
