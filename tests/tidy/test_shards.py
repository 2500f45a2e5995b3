"""The long tests leave nothing out: every test file belongs to exactly one shard or to several that
share it, each shard takes tests of the paths that it names, and every test is taken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts import shard_sources, test_full
from scripts.shard_sources import digest_of, files_of, ran_of
from tests.support.selections import paths_of, scale_of, selections, shards
from tests.support.sharing import LONG, PARSED, TOGETHER, piece_of, turn_of
from tests.tidy.sources import ROOT, project_files


def shard_paths() -> dict[str, str]:
    """Path → shard."""
    shards = tomllib.loads((ROOT / "tests" / "shards.toml").read_text())["shard"]
    return {path: shard["name"] for shard in shards for path in shard["args"] if path.startswith("tests/")}


def test_every_path_of_a_shard_exists() -> None:
    assert not [path for path in shard_paths() if not (ROOT / path).exists()]


def test_every_test_belongs_to_one_shard() -> None:
    paths = shard_paths()
    files = [
        name for name in project_files() if name.startswith("tests/") and "/test_" in name and name.endswith(".py")
    ]
    homes = {name: [path for path in paths if name == path or name.startswith(f"{path}/")] for name in files}
    assert len(files) > 10
    strays = {name: found for name, found in homes.items() if len(found) != 1}
    assert not strays, f"give them a place in tests/shards.toml: {strays}"


def test_each_shard_takes_tests_of_all_that_it_names_and_every_test_is_taken() -> None:
    """A file was named by a shard whose expression left out all of its tests, so it was in no long
    run."""
    found = selections(["tests"], 1)
    empty, left = {*found.empty}, {*found.left}
    # Some files have other tests at the scale of their shards.
    files = {path for _, path in empty} | {name.partition("::")[0] for name in left}
    scales = {
        scale_of(shard)
        for shard in shards()
        for path in paths_of(shard)
        if any(f"{f}/".startswith(f"{path}/") for f in files)
    }
    for scale in sorted(scales - {1}):
        there = selections(sorted(files), scale)
        of_scale = {shard["name"] for shard in shards() if scale_of(shard) == scale}
        empty -= {(shard, path) for shard, path in empty if shard in of_scale} - there.empty
        left &= there.left
    assert not empty, "their expression leaves out every test of the path"
    assert not left, "no expression of a shard takes them"
    assert len(found.tests) > 10_000


def test_a_result_of_a_shard_counts_as_long_as_nothing_moves_that_its_tests_import_or_start() -> None:
    soak = files_of(["tests/soak", "-k", "disk"])
    assert {
        "spark_app/hudi_table/api.py",
        "tests/soak/worker.py",
        "tests/support/versitygw.py",
        "tests/conftest.py",
        "pyproject.toml",
    } < {*soak}
    assert not [name for name in soak if name.startswith(("operator/", "spark_app/hudi_spark/", "charts/"))]
    of_operator = {*files_of(["tests/cluster/test_reconcile.py"])}
    assert {
        "charts/hudi-operator/values.yaml",
        "operator/hudi_operator/__init__.py",
        "tests/support/api_server.py",
    } < of_operator
    assert {name for name in soak if name.startswith("spark_app/")} < of_operator
    assert not [name for name in of_operator if name.startswith("tests/soak/")]
    of_streams = {*files_of(["tests/streams/test_once.py"])}
    assert {"examples/streaming/demo.py", "spark_app/hudi_spark/jobs/ingest.py", "tests/support/kafka.py"} < of_streams
    reconcile = "operator/hudi_operator/runtime/reconcile.py"
    assert reconcile not in of_streams, "drivers that no operator starts are as they were"
    for name in ("operated", "demo"):
        assert reconcile in files_of([f"tests/streams/test_{name}.py"])
    others = ("tests/soak/", "tests/interop/", "examples/kubernetes/")
    assert not [name for name in of_streams if name.startswith(others)]
    assert "examples/kubernetes/flights.yaml" in of_operator
    assert "tests/soak/worker.py" in files_of(["tests/tidy"])


def test_what_a_run_did_not_load_does_not_make_its_result_old() -> None:
    soak = ["tests/soak", "-k", "disk"]
    notes = [
        "hudi_table",
        "hudi_table.api",
        "hudi_table.api:open_table",
        "hudi_table.write.operations",
        "+pyarrow",
        "+os",
    ]
    ran = ran_of(soak, notes)
    assert ran == ["+pyarrow", *sorted(notes[:4])]
    left = {*files_of(soak, ran)}
    assert {"spark_app/hudi_table/api.py", "spark_app/hudi_table/write/operations.py", "tests/soak/worker.py"} < left
    assert not [name for name in left if name.startswith(("spark_app/hudi_table/services/", "requirements/"))]
    assert "requirements/hudi.txt" in files_of(["tests/interop/test_types.py"], ran)
    assert ran_of(["tests/tidy"], notes) == []


CODE = """
from a import one, two

LIMIT = 1

class Kept:
    def runs(self):
        return one(LIMIT)

    def rests(self):
        return two()

def runs():
    return 1

def rests():
    return two()
"""


@pytest.mark.parametrize(
    ("before", "after", "is_old"),
    [
        ("return one(LIMIT)", "return one(LIMIT + 1)", True),
        ("return 1", "return 2", True),
        ("LIMIT = 1", "LIMIT = 2", True),
        ("import one, two", "import other as one, two", True),
        ("def rests(self):", "def rests(self, more):", True),
        ("class Kept:", "class Kept:\n    def added(self):\n        pass\n", True),
        ("return two()", "return two() + 1", False),
        ("def rests():", "def rests(more):", False),
        ("import one, two", "import one, other as two", False),
        ("def rests():", "def added():\n    return two()\n\ndef rests():", False),
        ("class Kept:", "# what is kept\nclass Kept:\n    'A text.'\n", False),
    ],
)
def test_of_functions_those_that_ran_make_a_result_old(
    before: str, after: str, is_old: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "spark_app/hudi_table/one.py"
    ran = ["hudi_table.one", "hudi_table.one:Kept.runs", "hudi_table.one:runs"]
    monkeypatch.setattr(shard_sources, "ROOT", tmp_path)
    monkeypatch.setattr(shard_sources, "files_of", lambda *_: (name,))
    monkeypatch.setattr(shard_sources, "tracked", tuple)
    monkeypatch.setattr(shard_sources, "_pins", dict)
    (tmp_path / name).parent.mkdir(parents=True)
    digests = []
    for code in (CODE, CODE.replace(before, after)):
        (tmp_path / name).write_text(code)
        digests.append(digest_of(["tests/soak"], ran))
    assert CODE.replace(before, after) != CODE
    assert (digests[0] != digests[1]) == is_old


def test_of_packages_the_versions_of_those_that_were_loaded_make_a_result_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_sources, "files_of", lambda *_: ())
    digests = []
    for pins in ({"pyarrow": "21", "rich": "1"}, {"pyarrow": "21", "rich": "2"}, {"pyarrow": "22", "rich": "1"}):
        monkeypatch.setattr(shard_sources, "_pins", lambda pins=pins: pins)
        digests.append(digest_of(["tests/soak"], ["+pyarrow"]))
    assert digests[0] == digests[1] != digests[2]


def test_a_comment_does_not_make_a_result_old_and_a_changed_number_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, args = "tests/soak/one.py", ["tests/soak"]
    monkeypatch.setattr(shard_sources, "ROOT", tmp_path)
    monkeypatch.setattr(shard_sources, "files_of", lambda *_: (name,))
    monkeypatch.setattr(shard_sources, "tracked", tuple)
    (tmp_path / "tests" / "soak").mkdir(parents=True)
    digests = []
    for code in (
        '"""One."""\nX = 1\n',
        '"""Another."""\n\nX = 1  # the first\n"""What it is."""\n',
        '"""One."""\nX = 2\n',
    ):
        (tmp_path / name).write_text(code)
        digests.append(digest_of(args))
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("name", "before", "after", "is_old"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 1", "[tool.ruff]\nline-length = 2", False),
        ("pyproject.toml", "[project]\ndependencies = []", "[project]\ndependencies = ['x']", True),
        ("pyproject.toml", "[tool.pytest.ini_options]\ntimeout = 1", "[tool.pytest.ini_options]\ntimeout = 2", True),
        ("tests/shards.toml", "a = 1", "a = 2", False),
        ("tests/data/x.json", "1", "2", True),
    ],
)
def test_of_settings_those_of_what_runs_make_a_result_old(
    name: str, before: str, after: str, is_old: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shard_sources, "ROOT", tmp_path)
    monkeypatch.setattr(shard_sources, "files_of", lambda *_: (name,))
    monkeypatch.setattr(shard_sources, "tracked", tuple)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    digests = []
    for text in (before, after):
        (tmp_path / name).write_text(text)
        digests.append(digest_of(["tests/soak"]))
    assert (digests[0] != digests[1]) == is_old


def test_what_processes_load_and_run_is_noted_as_it_happens(tmp_path: Path) -> None:
    notes, paths = tmp_path / "notes", os.pathsep.join([str(ROOT / "scripts" / "noting"), str(ROOT / "spark_app")])
    notes.mkdir()
    code = """
import inspect, os
from hudi_table.model.counts import counted
from hudi_table.errors import HudiError
assert "row" in counted(1, "row") and str(HudiError("x")) == "x"
assert inspect.getsource(counted).startswith("def counted(")
os.kill(os.getpid(), 9)
"""
    for _ in range(2):  # the second loads what the first has compiled
        env = os.environ | {"PYTHONPATH": paths, "HUDI_NOTES": str(notes)}
        assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -9
        noted = {path.name for path in notes.iterdir()}
        assert {"hudi_table", "hudi_table.model.counts", "hudi_table.model.counts:counted"} <= noted
        assert {"hudi_table.errors:HudiError.__init__", "hudi_table.errors:HudiError.__str__", "+inspect"} <= noted
        assert "hudi_table.errors:HudiError.name" not in noted
        for path in notes.iterdir():
            path.unlink()


def test_a_run_that_takes_too_long_is_ended_with_what_it_began(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Servers that stayed would take their processor from the runs behind it."""
    (tmp_path / "test_slow.py").write_text("""
import subprocess, sys, time
from pathlib import Path

import pytest

@pytest.fixture
def server():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    Path(__file__).with_name("began").write_text("")
    yield
    child.kill()
    Path(__file__).with_name("ended").write_text(str(child.wait()))

def test_slow(server):
    time.sleep(600)
""")
    monkeypatch.setattr(test_full, "STATE", tmp_path / "state")
    monkeypatch.setattr(test_full, "SHARD_SECONDS_MAX", 10)
    monkeypatch.setattr(test_full, "sources", lambda *_: "")
    result = test_full.run_shard(test_full.Shard("slow", [str(tmp_path / "test_slow.py"), "-p", "no:cacheprovider"]))
    assert (tmp_path / "began").exists()
    assert not result.passed
    assert (tmp_path / "ended").read_text() == "-9"


def test_tests_of_a_jvm_lie_together() -> None:
    """`make test` gives these folders to one process; a test elsewhere would start a second JVM
    beside the first."""
    marked = re.compile(r"^pytestmark = .*mark\.(spark|interop)\b|^ *@pytest\.mark\.(spark|interop)\b", re.MULTILINE)
    files = [name for name in project_files() if name.startswith("tests/") and name.endswith(".py")]
    found = [name for name in files if marked.search((ROOT / name).read_text())]
    assert found
    assert not [name for name in found if not name.startswith(TOGETHER)]


def test_what_the_scheduler_names_exists() -> None:
    files = [name for name in project_files() if name.startswith("tests/")]
    assert [prefix for prefix in (*TOGETHER, PARSED, *LONG) if not any(name.startswith(prefix) for name in files)] == []


def test_what_is_made_once_for_several_tests_is_made_in_one_process() -> None:
    assert piece_of("tests/interop/test_matrix.py::test_x") == piece_of("tests/interop/test_types.py::test_y")
    assert piece_of("tests/streams/test_jdbc_both.py::test_x") == piece_of("tests/streams/test_jdbc_mysql.py::test_y")
    assert piece_of("tests/streams/test_jdbc_both.py::test_x") != piece_of("tests/streams/test_once.py::test_y")
    assert piece_of("tests/tidy/test_limits.py::test_x") == piece_of("tests/tidy/test_words.py::test_y")
    shared, alone = "tests/hudi_table/test_installed.py", "tests/hudi_table/test_operations.py"
    assert piece_of(f"{shared}::test_x") == piece_of(f"{shared}::test_y") == shared
    assert piece_of(f"{alone}::test_x") != piece_of(f"{alone}::test_y")


def test_what_takes_long_is_begun_first_and_single_short_tests_last() -> None:
    names = ("tests/hudi_table/write/test_files.py::test_x", "tests/hudi_table/cli/test_query.py::test_x",
             "tests/hudi_table/test_operations.py::test_x", "tests/charts/test_life.py::test_x", "tests/interop/test_types.py::test_x")  # fmt: skip
    pieces = [piece_of(name) for name in names]
    assert sorted(pieces, key=turn_of) == pieces[::-1]
