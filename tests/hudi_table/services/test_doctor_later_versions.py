"""The doctor on tables of versions 8 and 9: nothing to say of sound ones, and what is lost or
damaged by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import open_table
from hudi_table.model.service.findings import Check, Severity
from tests.support import golden

NAME = "v9_bucket_mor"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return golden.unpack(NAME, tmp_path).base


def found(base: Path) -> set[tuple[Check, str]]:
    return {(finding.check, finding.path) for finding in open_table(str(base)).doctor(keys=True, data=True)}


def logged(base: Path) -> Path:
    return max(base.glob("*/.*.log.*"))


def base_file(base: Path) -> Path:
    return min(base.glob("*/*.parquet"))


def relative(base: Path, path: Path) -> str:
    return str(path.relative_to(base))


@pytest.mark.parametrize("name", golden.LATER)
def test_a_sound_table_has_no_errors(name: str, tmp_path: Path) -> None:
    findings = open_table(str(golden.unpack(name, tmp_path).base)).doctor(data=True)
    assert [finding for finding in findings if finding.severity is Severity.ERROR] == []


def test_a_base_file_that_is_gone_is_named(base: Path) -> None:
    gone = base_file(base)
    gone.unlink()
    assert relative(base, gone) in {path for _, path in found(base)}


def test_a_log_that_is_gone_is_named(base: Path) -> None:
    gone = logged(base)
    gone.unlink()
    assert relative(base, gone) in {path for _, path in found(base)}


def test_a_log_with_damage_where_a_commit_wrote_is_named_and_no_row_of_it_is_given(base: Path) -> None:
    damaged = logged(base)
    damaged.write_bytes(damaged.read_bytes()[:-20])
    assert (Check.DAMAGED_LOG, relative(base, damaged)) in found(base)
    with pytest.raises(Exception, match="is damaged"):
        open_table(str(base)).scan().to_arrow()


def test_a_cut_base_file_is_named(base: Path) -> None:
    cut = base_file(base)
    cut.write_bytes(cut.read_bytes()[:1000])
    assert relative(base, cut) in {path for _, path in found(base)}


def test_a_completed_instant_that_cannot_be_parsed_is_named(base: Path) -> None:
    (newest,) = sorted((base / ".hoodie" / "timeline").glob("*_*.deltacommit"))[-1:]
    newest.write_bytes(b"Obj\x01 no container")
    assert (Check.UNREADABLE_INSTANT, relative(base, newest)) in found(base)
