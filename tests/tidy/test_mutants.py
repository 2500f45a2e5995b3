"""Which tests `make mutants` asks of a change: those that call what is changed, and again at scale
those whose counts grow; where, and how it goes on."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import mutant_report, mutant_tests
from scripts.mutant_report import Mutant, Report, asked_now, digest_of
from scripts.mutant_tests import Tree, Usual, body_around, grows
from tests.tidy.sources import ROOT

MODULE = ROOT / "spark_app" / "hudi_table" / "model" / "digits.py"
NAME = MODULE.relative_to(ROOT).as_posix()
FUNCTIONS = [node for node in ast.parse(MODULE.read_text()).body if isinstance(node, ast.FunctionDef)]


def calls_of(folder: Path, text: str) -> Usual:
    """What a file of tests calls, as the plugin writes it down."""
    (folder / "test_it.py").write_text(text)
    env = os.environ | {"HUDI_REACHED": str(folder / "calls.json"), "PYTHONPATH": f"{ROOT}:{ROOT / 'spark_app'}"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.reached", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", ".", "."], cwd=folder, env=env, capture_output=True, check=False
    )
    return Usual(**json.loads((folder / "calls.json").read_text()))


def asked_of(found: Usual, line: int, name: str = NAME) -> list[str]:
    return found.asked(name, *body_around(ROOT / name, line))


def test_a_change_is_asked_of_the_tests_that_call_its_function_and_one_outside_of_functions_of_all(
    tmp_path: Path,
) -> None:
    called, other = FUNCTIONS[:2]
    text = f"""
from hudi_table.model import digits

def test_slow():
    digits.{called.name}("1")
    sum(range(10_000_000))

def test_it():
    digits.{called.name}("1")

def test_of_nothing():
    pass

def test_that_fails_anyway():
    digits.{called.name}("1")
    raise ValueError
"""
    found = calls_of(tmp_path, text)
    assert asked_of(found, called.body[-1].lineno) == ["test_it.py::test_it", "test_it.py::test_slow"]
    assert asked_of(found, other.body[-1].lineno) == []
    assert len(asked_of(found, 1)) == 3, "all but the one that fails without a change"
    assert asked_of(found, 1, NAME.replace("digits", "names")) == []


def test_what_tests_share_is_asked_of_all_of_them(tmp_path: Path) -> None:
    called = FUNCTIONS[0]
    text = f"""
import pytest
from hudi_table.model import digits

@pytest.fixture(scope="module")
def shared():
    return digits.{called.name}("1")

def test_first(shared):
    pass

def test_second(shared):
    pass
"""
    assert len(asked_of(calls_of(tmp_path, text), called.body[-1].lineno)) == 2


def test_whoever_starts_a_process_of_ours_is_always_asked(tmp_path: Path) -> None:
    program = ROOT / ".venv" / "bin" / "python"
    text = f"import subprocess\n\ndef test_it():\n    subprocess.run([{str(program)!r}, '-c', ''], check=False)\n\ndef test_other():\n    pass\n"
    assert asked_of(calls_of(tmp_path, text), FUNCTIONS[0].body[0].lineno) == ["test_it.py::test_it"]


def test_a_mutant_is_run_in_a_copy_and_never_touches_the_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutant_tests, "CPU_BEYOND", 1.0)
    test, before = "tests/hudi_table/model/test_digits.py", MODULE.read_text()
    with closing(Tree(tmp_path / "tree")) as tree:
        assert tree.run([test], cpu=10).failed == ""
        tree.put(NAME, "raise ValueError\n")
        assert test in tree.run([test], cpu=10).failed
        tree.put(NAME, "while True:\n    pass\n")
        assert tree.run([test], cpu=0).failed == "(hangs)"
        assert MODULE.read_text() == before
        tree.take_back(NAME)
        assert tree.run([test], cpu=10).failed == ""
        tree.put(NAME, "raise ValueError\n")
    Tree(tmp_path / "tree")
    assert (tmp_path / "tree" / NAME).read_text() == before, "what an ended run has left there is taken back"


def test_a_run_goes_on_where_the_last_one_ended_and_asks_again_what_other_tests_may_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"seed": 1, "each": 3, "files": 6, "further": 4, "scale": 2.0}
    text = digest_of(MODULE.read_text())
    noticed = Mutant(NAME, "AddNot", 11, "a", "not a", text, "noticed", "tests/test_it.py::test_it")
    missed = Mutant(NAME, "AddNot", 12, "b", "not b", text, "missed", tests=asked_now(options))
    untested = Mutant(NAME, "AddNot", 13, "c", "not c", text, "untested", tests=asked_now(options))
    first = Report(options, tmp_path / "mutants.json")
    for mutant in (noticed, missed, untested):
        assert first.settled(mutant) is None, "nothing is known yet"
        first.add(mutant)
    again = Report(options, tmp_path / "mutants.json")
    assert again.settled_of(NAME) == [noticed, missed, untested]
    # More files are asked: only what none of the fewer noticed is tried again, and what is known is kept until then.
    more = Report(options | {"files": 9}, tmp_path / "mutants.json")
    assert [more.settled(mutant) for mutant in (noticed, missed, untested)] == [noticed, None, None]
    assert list(more.mutants.values()) == [noticed, missed, untested]
    # The line that another module has now is another mutant.
    assert more.settled(replace(noticed, text=digest_of("another"))) is None
    assert not Report(options | {"seed": 2}, tmp_path / "mutants.json").mutants
    table = tmp_path / "equivalent.toml"
    table.write_text(f'[[mutant]]\nmodule = "{NAME}"\nwas = "b"\nbecame = "not b"\nreason = "It cannot be seen."\n')
    monkeypatch.setattr(mutant_report, "EQUIVALENT", table)
    excused = Report(options, tmp_path / "mutants.json")
    excused.add(missed_now := excused.settled(missed) or missed)
    assert missed_now.fate == "equivalent"
    written = (tmp_path / "mutants.md").read_text()
    assert "| hudi_table/model | 3 | 1 | 0 | 0 | 1 | 0 | 1 |" in written
    assert "`b` | `not b` | equivalent: It cannot be seen. |" in written


def test_what_is_called_equivalent_still_stands_in_the_code() -> None:
    for mutant in tomllib.loads((ROOT / "scripts" / "mutants_equivalent.toml").read_text()).get("mutant", []):
        lines = [line.strip() for line in (ROOT / mutant["module"]).read_text().splitlines()]
        assert mutant["was"] in lines, mutant
        assert mutant["reason"].endswith("."), mutant


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


def test_what_the_nearest_tests_miss_is_asked_of_those_that_reach_the_module_by_way_of_others() -> None:
    reader = mutant_tests.further_of(ROOT / "spark_app" / "hudi_table" / "codec" / "hfile" / "reader.py", 1000)
    assert reader[0] == "tests/hudi_table/codec/test_hfile.py", "its public names come from its package"
    assert reader.index("tests/hudi_table/codec/test_bootstrap.py") < reader.index("tests/interop/test_hfile.py")
    launchers = mutant_tests.further_of(ROOT / "operator" / "hudi_operator" / "launchers" / "cluster.py", 4)
    assert len(launchers) == 4
    assert "tests/cluster/test_launcher_choice.py" in launchers


def test_of_a_further_file_as_many_tests_are_asked_as_the_budget_pays_for() -> None:
    found = Usual([["a", 1.0], ["b", 2.0], ["c", 4.0]], [], [], {})
    assert (found.within(["a", "b", "c"], 3.5), found.sum_of(["a", "c"])) == (["a", "b"], 5.0)
