"""`hudictl resize`: it tells what it costs first, and acts on `--yes` alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudi_table.api import create_table, open_table
from hudi_table.cli.program import main
from tests.hudi_table.cli.test_verbs import ROWS, run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create_table(str(tmp_path / "t"), ROWS.schema, record_key="id", index={"type": "Bucket", "buckets": 2}).upsert(ROWS)
    return tmp_path / "t"


def item(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    (found,) = json.loads(run(capsys, "resize", *arguments, "-o", "json"))["items"]
    return dict(found)


def test_it_tells_the_cost_and_does_exactly_what_was_told(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = item(capsys, table, 4)
    assert (told["fileGroups"], told["filesBefore"], told["filesAfter"]) == (2, 2, 4)
    assert "2 file groups" in str(told["details"])
    assert open_table(str(table)).context.config.index.buckets == 2  # type: ignore[union-attr]
    done = item(capsys, table, 4, "--yes", "--plan", told["digest"])
    assert (done["bytesRead"], done["filesAfter"], done["rowsWritten"]) == (told["bytesRead"], 4, ROWS.num_rows)
    assert open_table(str(table)).context.config.index.buckets == 4  # type: ignore[union-attr]


@pytest.mark.parametrize("more", [[], ["--yes"]])
def test_an_option_that_says_otherwise_is_refused_with_and_without_a_dry_run(
    table: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    number = "hoodie.bucket.index.num.buckets"
    assert main(["resize", str(table), "4", "--option", f"{number}=8", *more]) != 0
    assert f"{number}=8 contradicts the 4 buckets" in capsys.readouterr().err
    assert main(["resize", str(table), "4", "--option", f"{number}=4", "--option", f"{number}=8", *more]) != 0
    assert "is given twice, with two values" in capsys.readouterr().err
    assert open_table(str(table)).context.config.index.buckets == 2  # type: ignore[union-attr]


def test_the_number_that_there_is_already_is_refused(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resize", str(table), "2", "--yes"]) != 0
    assert "2 buckets already" in capsys.readouterr().err
