"""Which tests `make mutants` asks of a change: those that call what is changed, and again at scale those whose counts grow."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from scripts import mutant_tests
from scripts.mutant_tests import Usual, body_around, grows
from tests.tidy.sources import ROOT

MODULE = ROOT / "spark_app" / "hudi_table" / "model" / "digits.py"
FUNCTIONS = [node for node in ast.parse(MODULE.read_text()).body if isinstance(node, ast.FunctionDef)]


def calls_of(folder: Path, text: str) -> Usual:
    """What a file of tests calls, as the plugin writes it down."""
    (folder / "test_it.py").write_text(text)
    env = os.environ | {"HUDI_REACHED": str(folder / "calls.json"), "PYTHONPATH": f"{ROOT}:{ROOT / 'spark_app'}"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.reached", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", ".", "."], cwd=folder, env=env, capture_output=True, check=True
    )
    return Usual(1.0, 1.0, **json.loads((folder / "calls.json").read_text()))


def test_a_change_is_asked_of_who_calls_its_function_and_one_outside_of_functions_of_who_imports_the_module(
    tmp_path: Path,
) -> None:
    called, other = FUNCTIONS[:2]
    name = called.name
    found = calls_of(tmp_path, f"from hudi_table.model import digits\n\ndef test_it():\n    digits.{name}('1')\n")
    assert not found.outside
    assert found.reaches(MODULE, called.body[-1].lineno)
    assert not found.reaches(MODULE, other.body[-1].lineno)
    assert found.reaches(MODULE, 1)
    assert not found.reaches(MODULE.with_name("names.py"), 1)


def test_whoever_starts_a_process_of_ours_is_always_asked(tmp_path: Path) -> None:
    program = ROOT / ".venv" / "bin" / "python"
    text = f"import subprocess\n\ndef test_it():\n    subprocess.run([{str(program)!r}, '-c', ''], check=False)\n"
    assert calls_of(tmp_path, text).reaches(MODULE, FUNCTIONS[0].body[0].lineno)


def test_a_line_of_a_signature_belongs_to_what_is_around_the_function() -> None:
    first = FUNCTIONS[0]
    assert body_around(MODULE, first.lineno)[0] == 0
    assert body_around(MODULE, first.body[0].lineno) == (first.lineno, first.end_lineno)


def test_counts_that_grow_are_seen_through_what_a_file_imports() -> None:
    assert grows("tests/hudi_table/test_crash_restore.py"), "its points come from tests.support.fault_points"
    assert grows("tests/hudi_table/model/table/test_rings.py")
    assert not grows("tests/tidy/test_limits.py")


def test_the_tests_that_have_a_modules_name_are_asked_first() -> None:
    found = mutant_tests.tests_of(ROOT / "spark_app" / "hudi_table" / "model" / "table" / "rings.py", 1000)
    assert found[0] == "tests/hudi_table/model/table/test_rings.py"
    assert len(found) > 1
