"""`hudictl metadata`, and what `hudictl doctor` says of a metadata table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import create_table, open_table, write_hudi
from hudi_table.cli import exits, main
from hudi_table.metadata.lifecycle import MetadataDroppedWarning, drop_partitions


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "flights"
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    write_hudi(create_table(str(folder), rows.schema, record_key="id", version=6), rows)
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = exits.GOOD) -> tuple[list[Any], str]:
    assert main([*map(str, arguments), "-o", "json"]) == code
    out = capsys.readouterr()
    return json.loads(out.out)["items"], out.err


def test_it_is_built_shown_and_dropped(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "metadata", base) == ([], "there is no metadata table; --build --yes makes one\n")
    found, said = run(capsys, "metadata", base, "--build")
    assert found == []
    assert "nothing was changed" in said
    found, _ = run(capsys, "metadata", base, "--build", "--yes", "--index", "column_stats")
    assert [(item["partition"], item["state"], item["fileGroups"]) for item in found] == [
        ("column_stats", "ready", 2),
        ("files", "ready", 1),
    ]
    write_hudi(base, pa.table({"id": ["c"], "n": [3]}))
    assert run(capsys, "metadata", base)[0][1]["logs"] == 2
    assert "--yes does it" in run(capsys, "metadata", base, "--drop")[1]
    assert run(capsys, "metadata", base, "--drop", "--yes")[0] == []
    assert not (base / ".hoodie" / "metadata").exists()
    assert "--yes does it" not in run(capsys, "metadata", base, "--drop")[1]


def test_an_index_is_dropped_by_its_name_and_the_rest_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, rows = tmp_path / "v9", pa.table({"id": ["a", "b"], "n": [1, 2], "name": ["x", "y"]})
    write_hudi(create_table(str(base), rows.schema, record_key="id", version=9), rows)
    asked = ["--index", "record_index", "--index", "secondary_index_by_n=n", "--index", "expr_index_up=upper(name)"]
    run(capsys, "metadata", base, "--build", "--yes", *asked)
    every = ["expr_index_up", "files", "record_index", "secondary_index_by_n"]
    found, said = run(capsys, "metadata", base, "--drop-index", "by_n")
    assert [item["partition"] for item in found] == every
    assert said == "would drop secondary_index_by_n\nnothing was changed; --yes does it\n"
    found, said = run(capsys, "metadata", base, "--drop-index", "by_n", "--yes")
    assert ([item["partition"] for item in found], said) == (every[:3], "")
    assert main(["metadata", str(base), "--drop-index", "by_n", "--yes"]) == exits.FAILED
    assert "the table has no index 'by_n'; there are up" in capsys.readouterr().err
    assert [item["partition"] for item in run(capsys, "metadata", base, "--drop-index", "up", "--yes")[0]] == every[1:3]
    assert main(["metadata", str(base), "--drop-index", "up"]) == exits.FAILED
    assert "there is none with a name" in capsys.readouterr().err
    assert main(["metadata", str(base), "--drop", "--drop-index", "up"]) == exits.USAGE
    assert "not allowed with argument --drop" in capsys.readouterr().err


def test_a_partition_that_is_not_built_is_refused_by_name(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metadata", str(base), "--build", "--yes", "--index", "secrets"]) == exits.USAGE
    assert "'secrets'" in capsys.readouterr().err


def test_the_doctor_finds_one_that_is_wrong_and_switches_it_off(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_table(str(base)).build_metadata()
    assert run(capsys, "doctor", base)[0] == []
    write_hudi(base, pa.table({"id": ["c"], "n": [3]}))
    (log,) = base.glob(".hoodie/metadata/files/.files-0000-0_*.log.2_*")
    log.unlink()
    found, _ = run(capsys, "doctor", base, code=exits.FINDINGS)
    assert {item["check"] for item in found} == {"MetadataTable"}
    assert "is not listed" in found[0]["message"]
    run(capsys, "metadata", base, code=exits.FINDINGS)
    _, said = run(capsys, "doctor", base, "--quarantine", "--yes")
    assert "the metadata table was dropped" in said
    assert run(capsys, "doctor", base)[0] == []
    assert "it was switched off: the metadata table is wrong: " in run(capsys, "metadata", base)[1]
    assert open_table(str(base)).scan().count() == 3


def test_a_partition_that_a_write_dropped_alone_is_told(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = open_table(str(base))
    table.build_metadata(["column_stats"])
    with pytest.warns(MetadataDroppedWarning):
        drop_partitions(table.context, {"column_stats"}, "its values do not compare")
    found, said = run(capsys, "metadata", base)
    assert [item["partition"] for item in found] == ["files"]
    assert "a write dropped its partition column_stats: its values do not compare" in said
