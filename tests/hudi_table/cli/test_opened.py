"""Flags that say nothing without another one are refused by name, and nothing is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import create_table
from hudi_table.cli.program import main
from tests.hudi_table.cli.test_verbs import ROWS


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create_table(str(tmp_path / "t"), ROWS.schema, record_key="id", index={"type": "Bucket", "buckets": 2}).upsert(ROWS)
    return tmp_path / "t"


@pytest.mark.parametrize(
    ("verb", "more", "words"),
    [
        ("metadata", ["--index", "column_stats"], "--index belongs to --build"),
        ("metadata", ["--drop", "--yes", "--index", "column_stats"], "--index belongs to --build"),
        ("metadata", ["--drop", "--option", "hoodie.metadata.enable=true"], "--option belongs to --build"),
        ("metadata", ["--yes"], "--yes belongs to --build, --drop or --drop-index"),
        ("doctor", ["--yes"], "--yes belongs to --quarantine"),
        ("doctor", ["--put-back", "2020", "--keys"], "--keys belongs to an examination"),
        ("doctor", ["--put-back", "2020", "--mend"], "--mend belongs to an examination"),
        ("savepoint", ["--comment", "why"], "--comment belongs to --create"),
        ("savepoint", ["--writers-stopped"], "--writers-stopped belongs to --delete"),
        ("resize", ["4", "--plan", "3f2a"], "--plan runs an approved plan and needs --yes"),
        ("clean", ["--plan", "3f2a"], "--plan runs an approved plan and needs --yes"),
        ("ttl", ["--days", "3", "--plan", "3f2a"], "--plan runs an approved plan and needs --yes"),
    ],
)
def test_a_flag_without_that_to_which_it_belongs_is_refused(
    table: Path, capsys: pytest.CaptureFixture[str], verb: str, more: list[str], words: str
) -> None:
    before = sorted(table.rglob("*"))
    assert main([verb, str(table), *more]) != 0
    assert words in capsys.readouterr().err
    assert sorted(table.rglob("*")) == before


def test_a_dry_run_of_building_says_what_would_be_built(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(table.rglob("*"))
    assert main(["metadata", str(table), "--build", "--index", "column_stats"]) == 0
    said = capsys.readouterr().err
    assert "would build files" in said
    assert "would build column_stats" in said
    assert main(["metadata", str(table), "--build", "--index", "nope"]) != 0
    assert sorted(table.rglob("*")) == before


def test_numbers_of_flags_are_told_as_people_write_them(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("x", "-1", "²", "1_0"):
        assert main(["timeline", str(table), f"--limit={text}"]) == 2
        assert f"{text!r} is not a whole number from 0" in capsys.readouterr().err


def test_nothing_is_told_in_words(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_table(str(table.parent / "p"), ROWS.schema, record_key="id", partition_by="city").upsert(ROWS)
    assert main(["ttl", str(table.parent / "p"), "--days", "3"]) == 0
    assert "no partition TTL plan to show" in capsys.readouterr().err
    assert main(["clean", str(table)]) == 0
    assert "no clean plan to show" in capsys.readouterr().err
