"""`hudictl explain`: errors, conditions, reasons and checks by their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudi_table import errors
from hudi_table.cli import main
from hudi_table.model.service.findings import Check


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


class TestExplain:
    """`hudictl explain`: a page for every error."""

    def test_a_page_is_found_whatever_its_spelling(self, capsys: pytest.CaptureFixture[str]) -> None:
        texts = {run(capsys, "explain", name) for name in ("WriteConflict", "writeconflict", "WriteConflictError")}
        (text,) = texts
        assert text.startswith("# WriteConflict\n")

    def test_without_a_name_all_are_listed(self, capsys: pytest.CaptureFixture[str]) -> None:
        listed = run(capsys, "explain", "-o", "name").split()
        assert errors.WriteConflictError.name() in listed
        assert listed == sorted(listed)
        index = (Path(__file__).parents[3] / "docs" / "errors" / "README.md").read_text()
        assert [name for name in listed if f"pages/{name}.md)" not in index] == []

    def test_a_summary_is_a_whole_sentence_of_its_page(self, capsys: pytest.CaptureFixture[str]) -> None:
        for row in json.loads(run(capsys, "explain", "-o", "json"))["items"]:
            paragraph = " ".join(run(capsys, "explain", row["name"]).split("\n\n")[1].split())
            assert f"{paragraph} ".startswith(f"{row['summary']} "), row["name"]
        assert "whose definition the cluster does not serve" in run(capsys, "explain", "-o", "wide")

    def test_an_unknown_name_suggests_the_nearest(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["explain", "CorruptTabel"]) == 2
        assert "no page explains 'CorruptTabel': did you mean CorruptTable?" in capsys.readouterr().err
        for far in ("zzz", "qqqq"):
            assert main(["explain", far]) == 2
            assert "there are AccessDenied, CommitStateUnknown" in capsys.readouterr().err

    def test_every_page_says_why_and_what_to_do(self, capsys: pytest.CaptureFixture[str]) -> None:
        for name in run(capsys, "explain", "-o", "name").split():
            text = run(capsys, "explain", name)
            assert text.startswith(f"# {name}\n\n")
            for heading in ("## Why", "## What to do", "## Example"):
                assert heading in text, name

    def test_every_check_of_the_doctor_is_explained(self, capsys: pytest.CaptureFixture[str]) -> None:
        for check in Check:
            assert "Check of hudictl doctor. " in run(capsys, "explain", check.value)
        assert "## What to do" in run(capsys, "explain", "orphanfile")
        both = run(capsys, "explain", "MetadataTable")
        assert both.startswith("# MetadataTable\n\n")
        assert both.count("## What to do") == 2
        assert main(["explain", "OrfanFile"]) == 2
        assert "did you mean OrphanFile?" in capsys.readouterr().err

    def test_a_page_can_be_had_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = json.loads(run(capsys, "explain", "invariant", "-o", "json"))
        assert (found["kind"], found["name"]) == ("Error", "Invariant")
