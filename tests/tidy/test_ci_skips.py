"""The rule that a skip is a failure on CI: run in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ci_skips import SKIPS, allowed_skips
from tests.tidy.sources import ROOT

TEST = """
import pytest
def test_good(): pass
def test_absent(): pytest.skip("no such tool")
@pytest.mark.xfail(reason="known")
def test_known(): assert False
"""


def run(folder: Path, *, ci: str, allowed: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text("from tests.support.ci_skips import *")
    (folder / "test_it.py").write_text(TEST)
    (folder / "skips.txt").write_text(allowed)
    env = os.environ | {"CI": ci, "HUDI_TEST_SKIPS": str(folder / "skips.txt"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "--rootdir", ".", "-c", os.devnull, "-p", "no:cacheprovider", "."]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_a_skip_fails_on_ci(tmp_path: Path) -> None:
    done = run(tmp_path, ci="true")
    assert done.returncode == 1
    assert "no such tool" in done.stdout
    assert "1 failed, 1 passed, 1 xfailed" in done.stdout


def test_a_listed_skip_passes_on_ci(tmp_path: Path) -> None:
    done = run(tmp_path, ci="true", allowed="test_it.py::test_abs* # the tool is not to be had there\n")
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped, 1 xfailed" in done.stdout


def test_a_skip_is_a_skip_elsewhere(tmp_path: Path) -> None:
    assert run(tmp_path, ci="").returncode == 0


def test_a_module_that_skips_itself_fails_on_ci(tmp_path: Path) -> None:
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    done = run(tmp_path, ci="true", allowed="test_it.py::* # listed\n")
    assert done.returncode != 0
    assert "no_such_module" in done.stdout


def test_a_line_without_a_reason_is_refused(tmp_path: Path) -> None:
    (tmp_path / "skips.txt").write_text("tests/test_x.py::test_y\n")
    with pytest.raises(ValueError, match="line 1"):
        allowed_skips(tmp_path / "skips.txt")


def test_the_list_of_the_project_is_well_formed() -> None:
    allowed_skips(SKIPS)
