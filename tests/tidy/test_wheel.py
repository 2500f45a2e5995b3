"""What an installed copy holds, seen in a wheel that is built here."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, production_sources, project_files


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder: Path = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_every_module_is_packed(packed: set[str]) -> None:
    modules = {source.path.partition("/")[2] for source in production_sources()}
    assert modules <= packed


def test_what_the_code_reads_at_run_time_is_packed(packed: set[str]) -> None:
    data = {
        name.partition("/")[2]
        for name in project_files()
        if name.startswith(("spark_app/", "operator/")) and not name.endswith(".py")
    }
    assert any(name.endswith(".avsc") for name in data)
    assert data <= packed


def test_nothing_but_the_packages_is_packed(packed: set[str]) -> None:
    tops = {name.partition("/")[0] for name in packed}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "hudi_table",
        "hudi_spark",
        "pyspark_hudi",
        "pyspark_org_apache_hudi",
        "hudi_operator",
    }
