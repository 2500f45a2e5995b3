"""`hudictl local`: output, exit codes, and where each thing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.__main__ import main
from tests.support.manifests import manifest


def write(folder: Path, **spec: Any) -> Path:
    path = folder / "flights.yaml"
    path.write_text(yaml.safe_dump(manifest(**spec)))
    return path


def test_resources_go_to_stdout_and_everything_else_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, location="lake", recordKey=["id"])
    assert main(["local", str(path), "--state", str(tmp_path / "state"), "-o", "json"]) == 1
    out, err = capsys.readouterr()
    (found,) = json.loads(out)["items"]
    assert found["status"]["conditions"][0]["reason"] == "InvalidSpec"
    assert "HudiTable flights is not ready: InvalidSpec: spec.location" in err


def test_a_table_service_without_its_table_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "service.yaml"
    path.write_text(yaml.safe_dump(manifest("nightly", "TableService", tableRef={"name": "x"}, type="Clustering")))
    assert main(["local", str(path), "--state", str(tmp_path / "state")]) == 1
    out, err = capsys.readouterr()
    head = ["NAME", "TABLE", "TYPE", "MODE", "PHASE", "LAST", "NEXT", "READY", "AGE"]
    assert out.splitlines()[0].split() == head
    assert out.splitlines()[1].split()[:6] == ["nightly", "x", "Clustering", "ScheduleAndExecute", "Failed", "False"]
    assert "there is no HudiTable 'x' in namespace default; create it" in err


def test_what_is_no_manifest_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", str(tmp_path / "absent.yaml"), "--state", str(tmp_path / "state")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"error: InvalidSpec: {tmp_path}/absent.yaml: no such file or folder",
        "hudictl explain InvalidSpec says more",
    ]
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("arguments", [["local"], ["local", "--nothing"], ["other"], []])
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_help_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "--help"]) == 0
    assert "--watch" in capsys.readouterr().out
