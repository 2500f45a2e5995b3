"""Completion in a real bash, rows as one JSON document, and what the doctor says it looked at."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table import create_table, write_hudi
from hudi_table.cli.program import VERBS, main

ROWS = pa.table({"id": ["a", "b"], "text": ['two\nlines, "quoted"', None]})


@pytest.fixture
def base(tmp_path: Path) -> str:
    table = create_table(str(tmp_path / "t"), ROWS.schema, record_key="id")
    write_hudi(table, ROWS)
    return table.base_path


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["hudictl", "do"], {"doctor", "downgrade"}),
        (["hudictl", "doctor", "--k"], {"--keys"}),
        (["hudictl", "read", "-o", "j"], {"json", "jsonl"}),
    ],
)
def test_bash_completes_verbs_options_and_values(
    capsys: pytest.CaptureFixture[str], words: list[str], found: set[str]
) -> None:
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _hudictl; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    bash = shutil.which("bash")
    assert bash
    done = subprocess.run(
        [bash, "-c", f"{script(capsys, 'bash')}\n{asked}"], capture_output=True, text=True, timeout=60
    )
    assert set(done.stdout.split()) == found, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_verb_is_in_the_scripts_of_other_shells(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    text = script(capsys, shell)
    assert all(verb in text for verb in VERBS)


@pytest.mark.parametrize("arguments", [["read"], ["query", "select * from this_table order by id"]])
def test_rows_are_one_json_document(base: str, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    verb, *more = arguments
    assert main([verb, base, *more, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "RowList"
    assert document["items"] == ROWS.to_pylist()


def test_no_rows_are_a_document_too(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", base, "--filter", "id = 'none'", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == []


def test_the_doctor_says_what_it_looked_at(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", base]) == 0
    said = capsys.readouterr().err
    assert re.search(r"checked: properties, \d+ commits and 0 pending instants", said)
    assert "--keys reads them" in said
    assert main(["doctor", base, "--keys"]) == 0
    assert "every record key" in capsys.readouterr().err
