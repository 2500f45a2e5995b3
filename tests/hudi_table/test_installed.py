"""The wheel, installed into fresh environments: alone, and with each of its extras.

An environment gets, by links, what is installed here of that which the wheel asks for, and nothing else: no index is asked.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
    "postgres": "import hudi_table.index.postgres, adbc_driver_postgresql.dbapi",
    "bar": "from rich.progress import Progress",
}
"""What each extra is for."""
SCAN = """
import pyarrow as pa
from hudi_table import create_table
def scan():
    table = create_table("memory://m/t", pa.schema([("id", pa.string())]), record_key="id")
    table.upsert(pa.table({"id": ["a"]}))
    return table.scan()
"""


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


@cache
def tops() -> dict[str, set[str]]:
    """Of each name beside site-packages' own the distributions that have files there."""
    found: dict[str, set[str]] = {}
    for each in metadata.distributions():
        for file in each.files or ():
            found.setdefault(file.parts[0], set()).add(canonicalize_name(each.metadata["Name"]))
    return found


def linked(distribution: str, site: Path) -> None:
    """Make an installed distribution importable from another environment: folders of its own whole, shared ones file by file."""
    for file in metadata.files(distribution) or ():
        top = file.parts[0]
        whole = len(tops()[top]) == 1
        source = Path(str(file.locate()))
        target = site / top if whole else site / str(file)
        source = source.parents[len(file.parts) - 2] if whole and len(file.parts) > 1 else source
        if top in ("..", "__pycache__") or file.suffix == ".pyc" or target.exists() or not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The interpreter of a fresh environment by extra ("" for the base install), made when it is first asked for."""
    folder: Path = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")

    @cache
    def made(extra: str) -> Path:
        place: Path = tmp_path_factory.mktemp("environment")
        venv.create(place, with_pip=False, symlinks=True)
        (site,) = place.glob("lib/python*/site-packages")
        zipfile.ZipFile(wheel).extractall(site)
        for name in needed([*PROJECT["dependencies"], *EXTRAS.get(extra, ())]):
            linked(name, site)
        return place / "bin" / "python"

    return made


def ran(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, "-I", *arguments], capture_output=True, text=True, timeout=120)


def test_the_base_install_lists_no_verb_that_cannot_run(environment: Callable[[str], Path]) -> None:
    shown = ran(environment(""), "-m", "hudi_table", "--help")
    verbs = {line.split()[0] for line in shown.stdout.splitlines() if line.startswith("    ") and line.split()}
    assert {"info", "read", "doctor"} <= verbs
    assert not verbs & {"status", "local", "approve", "why"}
    asked = ran(environment(""), "-m", "hudi_table", "status")
    assert asked.returncode != 0
    assert "pip install 'hudi-operator[operator]' brings it" in asked.stderr


def test_the_base_install_names_what_installs_a_library_that_is_missing(environment: Callable[[str], Path]) -> None:
    for method, extra in (("to_pandas", "pandas"), ("to_polars", "polars"), ("to_duckdb", "query")):
        done = ran(environment(""), "-c", f"{SCAN}scan().{method}()")
        assert f"pip install 'hudi-operator[{extra}]' brings it" in done.stderr
    asked = ran(environment(""), "-m", "hudi_table", "query", "select 1", "--table", "t=x")
    assert "pip install 'hudi-operator[query]'" in asked.stderr


def test_every_extra_is_tried() -> None:
    assert set(WITH_EXTRA) == set(EXTRAS)


@pytest.mark.parametrize("extra", WITH_EXTRA)
def test_an_extra_brings_all_that_its_part_imports(environment: Callable[[str], Path], extra: str) -> None:
    done = ran(environment(extra), "-c", f"{SCAN}{WITH_EXTRA[extra]}")
    assert done.returncode == 0, done.stderr
    if extra == "operator":
        assert "  status" in ran(environment(extra), "-m", "hudi_table", "--help").stdout
