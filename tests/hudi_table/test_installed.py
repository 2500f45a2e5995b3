"""The wheel, installed into fresh environments: alone, and with each of its extras.

An environment gets what the wheel asks for, as it is locked, and nothing else.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hudi_table.cli.program import VERBS
from scripts.setup_env import installer_environment

ROOT = Path(__file__).parents[2]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {name: needed for name, needed in PROJECT["optional-dependencies"].items() if name != "dev"}
WITH_EXTRA = {
    "spark": "import hudi_spark.writer, hudi_spark.jobs.service, pyspark_hudi",
    "query": "import duckdb; print(scan().to_duckdb().fetchall())",
    "pandas": "scan().to_pandas()",
    "polars": "scan().to_polars().collect()",
    "operator": "import hudi_operator.cli.run, hudi_operator.handlers, hudi_operator.cli.kubectl.verb_status",
    "aws": "import boto3",
    "postgres": "import hudi_table.index.keystore.postgres, adbc_driver_postgresql.dbapi",
    "bar": "from rich.progress import Progress",
}
"""What each extra is for."""
SETTINGS = installer_environment(Path(sys.executable))
ARGUMENTS = {
    "read": ["--limit", "1"],
    "query": ["select 1"],
    "rollback": ["INSTANT"],
    "restore": ["INSTANT"],
    "resize": ["8"],
    "explain": [],
    "completion": ["bash"],
}
"""What verbs take beside a table; `explain` and `completion` take none."""
EVERY_VERB = """
import sys
import pyarrow as pa
from hudi_table import create_table
from hudi_table.cli import main
table = create_table(sys.argv[1], pa.schema([("id", pa.string())]), record_key="id", index={"type": "Bucket", "buckets": 4})
newest = table.upsert(pa.table({"id": ["a"]})).instant
for call in eval(sys.argv[2]):
    words = [word.replace("INSTANT", newest) for word in call]
    print("==", call[0], main(words), file=sys.stderr)
"""
SCAN = """
import pyarrow as pa
from hudi_table import create_table
def scan():
    table = create_table("memory://m/t", pa.schema([("id", pa.string())]), record_key="id")
    table.upsert(pa.table({"id": ["a"]}))
    return table.scan()
"""


LOCKED = re.compile(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==(?:.*\\\n)*.*$", re.MULTILINE)
"""A distribution of a lock, with its hashes."""
UV = Path(sys.executable).with_name("uv")


def needed(requirements: list[str]) -> set[str]:
    """The distributions that these requirements bring, their own requirements too."""
    found: set[str] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        one = left.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(one.name)
        if name in found:
            continue
        found.add(name)
        for text in metadata.requires(name) or ():
            inner = Requirement(text)
            extras = one.extras or {""}
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                inner.marker = None
                left.append(inner)
    return found


def install(place: Path, *what: str | Path) -> None:
    """Install into an environment, as the locks say: from what uv has kept of the set-up, else from the machine's index."""
    command: list[str | Path] = [
        UV,
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--python",
        place,
    ]
    for offline in (["--offline"], []):
        done = subprocess.run([*command, *offline, *what], env=SETTINGS, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    raise AssertionError(done.stderr)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The interpreter of a fresh environment by extra ("" for the base install), made when it is first asked for: the wheel, and what
    it declares that it needs."""
    folder: Path = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    locks = [(ROOT / "requirements" / f"{name}.txt").read_text() for name in ("build", "dev")]
    pins = {found[1]: found[0] for text in locks for found in LOCKED.finditer(text)}

    @cache
    def made(extra: str) -> Path:
        place: Path = tmp_path_factory.mktemp("environment")
        subprocess.run([UV, "venv", "--quiet", "--clear", "--python", sys.executable, place], check=True)
        python = place / "bin" / "python"
        names = sorted(needed([*PROJECT["dependencies"], *EXTRAS.get(extra, ())]))
        listed = place / "locked.txt"
        # pyspark comes as a source: what builds it goes again.
        for group in (["setuptools"], names) if "pyspark" in names else (names,):
            listed.write_text("\n".join(pins[name] for name in group))
            install(python, "--require-hashes", "-r", listed)
        if "pyspark" in names:
            subprocess.run([UV, "pip", "uninstall", "--quiet", "--python", python, "setuptools"], check=True)
        install(python, wheel)
        subprocess.run([UV, "pip", "check", "--quiet", "--python", python], check=True)
        return python

    return made


def ran(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, "-I", *arguments], capture_output=True, text=True, timeout=120)


def listed(python: Path) -> set[str]:
    """The verbs that `hudictl --help` shows."""
    shown = ran(python, "-m", "hudi_table", "--help").stdout
    return {line.split()[0] for line in shown.splitlines() if line.startswith("    ") and line.split()}


def test_the_base_install_lists_no_verb_that_cannot_run(environment: Callable[[str], Path], tmp_path: Path) -> None:
    python = environment("")
    verbs = listed(python)
    assert verbs >= set(VERBS) - {"query"}
    assert not verbs & {"query", "status", "local", "approve", "why"}
    table = str(tmp_path / "t")
    calls = [
        [verb, *([] if verb in ("explain", "completion") else [table]), *ARGUMENTS.get(verb, [])]
        for verb in VERBS
        if verb in verbs
    ]
    done = ran(python, "-c", EVERY_VERB, table, repr(calls))
    ended = {name: int(code) for name, code in re.findall(r"^== (\w+) (\d+)$", done.stderr, re.MULTILINE)}
    assert set(ended) == {call[0] for call in calls}, done.stderr
    assert "not installed" not in done.stderr
    assert "Invariant" not in done.stderr
    asked = ran(python, "-m", "hudi_table", "status")
    assert asked.returncode != 0
    assert "pip install 'hudi-operator[operator]' brings it" in asked.stderr


def test_the_base_install_names_what_installs_a_library_that_is_missing(environment: Callable[[str], Path]) -> None:
    for method, extra in (("to_pandas", "pandas"), ("to_polars", "polars"), ("to_duckdb", "query")):
        done = ran(environment(""), "-c", f"{SCAN}scan().{method}()")
        assert f"pip install 'hudi-operator[{extra}]' brings it" in done.stderr
    for engine, extra in (("duckdb", "query"), ("spark", "spark")):
        asked = ran(environment(""), "-m", "hudi_table", "query", "select 1", "--table", "t=x", "--engine", engine)
        assert f"pip install 'hudi-operator[{extra}]'" in asked.stderr


def test_every_extra_is_tried() -> None:
    assert set(WITH_EXTRA) == set(EXTRAS)


@pytest.mark.parametrize(
    "extra",
    # 300 MB, and built from source where that was not kept.
    [pytest.param(extra, marks=pytest.mark.at_scale(2) if extra == "spark" else ()) for extra in WITH_EXTRA],
)
def test_an_extra_brings_all_that_its_part_imports(environment: Callable[[str], Path], extra: str) -> None:
    done = ran(environment(extra), "-c", f"{SCAN}{WITH_EXTRA[extra]}")
    assert done.returncode == 0, done.stderr
    brings = {"operator": {"status", "local"}, "query": {"query"}, "spark": {"query"}}
    assert listed(environment(extra)) >= brings.get(extra, set())
