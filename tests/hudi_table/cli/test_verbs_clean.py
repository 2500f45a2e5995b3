"""`hudictl clean`, `hudictl savepoint` and `hudictl ttl`: a dry run until --yes, an approved plan,
what is kept."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table import create_table, open_table, write_hudi
from hudi_table.cli import exits, main
from hudi_table.services.cleaning import policy, ttl
from hudi_table.table.timeline.instants import local_now
from tests.hudi_table.cli.test_verbs import ROWS, run

KEEP = ("--option", "hoodie.clean.commits.retained=1")


@pytest.fixture
def rewritten(tmp_path: Path) -> Path:
    index = {"type": "Bucket", "buckets": 1}
    table = create_table(str(tmp_path / "t"), ROWS.schema, record_key="id", partition_by="city", index=index)
    for value in range(4):
        write_hudi(table, pa.table({"id": ["k001"], "city": ["ny"], "n": [value]}))
    return tmp_path / "t"


def test_a_dry_run_deletes_nothing_and_its_plan_can_be_approved(
    rewritten: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clean", str(rewritten), *KEEP, "-o", "json"]) == 0
    printed = capsys.readouterr()
    (row,) = json.loads(printed.out)["items"]
    assert row["partition"] == "ny"
    assert row["what"].startswith("2 files, ")
    assert "2 files would be deleted" in printed.err
    assert len(list(rewritten.rglob("*.parquet"))) == 4
    digest = printed.err.split("--plan ")[1].split()[0]
    assert main(["clean", str(rewritten), "--plan", digest]) == 2
    capsys.readouterr()
    (done,) = json.loads(run(capsys, "clean", rewritten, "--yes", "--plan", digest, *KEEP, "-o", "json"))["items"]
    assert (done["filesDeleted"], done["filesFailed"]) == (2, 0)
    assert len(list(rewritten.rglob("*.parquet"))) == 2
    assert main(["clean", str(rewritten), "--yes", *KEEP]) == 0
    assert "nothing to delete (keep the newest 1 commit)" in capsys.readouterr().err


def test_what_was_superseded_just_now_is_left_to_readers_and_the_command_says_so(
    rewritten: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "READERS_SECONDS", 60.0)
    assert main(["clean", str(rewritten), "--yes", *KEEP]) == 0
    assert "2 files held back by readers of the last minute" in (told := capsys.readouterr().err)
    assert "clean again in a minute" in told
    assert main(["clean", str(rewritten), *KEEP]) == 0
    digest = capsys.readouterr().err.split("--plan ")[1].split()[0]
    assert main(["clean", str(rewritten), "--yes", "--plan", digest, *KEEP]) == exits.CONFLICT
    assert "approve the plan again in a minute" in capsys.readouterr().err
    assert len(list(rewritten.rglob("*.parquet"))) == 4


def test_a_savepoint_holds_files_back_until_it_is_deleted(rewritten: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instant = json.loads(run(capsys, "timeline", rewritten, "-o", "json"))["items"][-2]["instant"]
    (made,) = json.loads(run(capsys, "savepoint", rewritten, "--create", instant, "--comment", "first", "-o", "json"))[
        "items"
    ]
    assert (made["instant"], made["files"], made["comment"]) == (instant, 1, "first")
    assert f"1 file held back by savepoint {instant}" in run(capsys, "clean", rewritten, *KEEP)
    run(capsys, "savepoint", rewritten, "--create")
    assert len(json.loads(run(capsys, "savepoint", rewritten, "-o", "json"))["items"]) == 2
    assert main(["savepoint", str(rewritten), "--delete", instant]) == 1
    assert "--writers-stopped" in capsys.readouterr().err
    deleted = run(capsys, "savepoint", rewritten, "--delete", instant, "--writers-stopped", "-o", "json")
    left = json.loads(deleted)["items"]
    assert [row["instant"] != instant for row in left] == [True]
    assert "held back" not in run(capsys, "clean", rewritten, *KEEP)


def test_a_clean_that_waits_is_announced_and_finished(rewritten: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = open_table(str(rewritten)).schedule_clean({"hoodie.clean.commits.retained": "1"})
    assert plan is not None
    assert main(["clean", str(rewritten), *KEEP]) == 0
    assert f"the clean {plan.instant} waits" in capsys.readouterr().err
    (done,) = json.loads(run(capsys, "clean", rewritten, "--yes", *KEEP, "-o", "json"))["items"]
    assert done["instant"] == plan.instant


def test_what_excludes_each_other_is_refused(rewritten: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", str(rewritten), "--create", "--delete", "x"]) == 2
    assert main(["savepoint", str(rewritten), "--comment", "x"]) == 2
    assert main(["savepoint", str(rewritten), "--writers-stopped"]) == 2
    assert "belongs to --create" in capsys.readouterr().err


def test_partitions_that_outlived_their_time_are_shown_and_dropped_on_yes(
    rewritten: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["ttl", str(rewritten), "--days", "2"]) == 0
    assert "no partition has expired" in capsys.readouterr().err
    monkeypatch.setattr(ttl, "local_now", lambda ctx: local_now(ctx) + timedelta(days=3))
    assert main(["ttl", str(rewritten), "--days", "2", "-o", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["items"] == [{"partition": "ny"}]
    assert "1 partition older than 2 days: 1 file group," in printed.err
    digest = printed.err.split("--plan ")[1].split()[0]
    assert open_table(str(rewritten)).scan().count() == 1
    assert main(["partition-ttl", str(rewritten), "--days", "3", "--option", f"{ttl.DAYS}=2"]) == 2
    assert "--days says 3" in capsys.readouterr().err
    (done,) = json.loads(run(capsys, "ttl", rewritten, "--days", "2", "--yes", "--plan", digest, "-o", "json"))["items"]
    assert done["partitions"] == 1
    assert open_table(str(rewritten)).scan().count() == 0
