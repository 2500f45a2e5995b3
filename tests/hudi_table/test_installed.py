"""The distributions as `make dist` builds them, installed into fresh environments: each alone, and
with each of its extras.

An environment gets what the wheel asks for, as it is locked, and nothing else.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hudi_table.cli.added_verbs import ENGINES_ELSEWHERE, VERBS_ELSEWHERE
from hudi_table.cli.program import VERBS
from hudi_table.version import __version__
from scripts.build_dist import build
from scripts.setup_env import installer_environment
from tests.support.distributions import PROJECTS, entry_points, extras, needs

ROOT = Path(__file__).parents[2]

WITH = {
    "hudi-table[query]": "import duckdb; print(scan().to_duckdb().fetchall())",
    "hudi-table[pandas]": "scan().to_pandas()",
    "hudi-table[polars]": "scan().to_polars().collect()",
    "hudi-table[datafusion]": "scan().to_datafusion().collect()",
    "hudi-table[aws]": "import boto3",
    "hudi-table[postgres]": "import hudi_table.index.keystore.postgres, adbc_driver_postgresql.dbapi",
    "hudi-table[mysql]": "import hudi_table.sources.jdbc.mysql, connectorx",
    "hudi-table[delta]": "import hudi_table.sources.imports.delta; from deltalake import DeltaTable; DeltaTable.scan",
    "hudi-table[iceberg]": "import hudi_table.sources.imports.iceberg; from pyiceberg.table import StaticTable",
    "hudi-table[kafka]": "import hudi_table.sources.kafka.source, confluent_kafka.admin",
    "hudi-table[zookeeper]": "import hudi_table.table.locks.zookeeper, kazoo.client",
    "hudi-table[bar]": "from rich.progress import Progress",
    "hudi-operator": "import hudi_operator.cli.run, hudi_operator.handlers, hudi_operator.cli.kubectl.verb_status",
    "hudi-spark": "import hudi_spark.writer, hudi_spark.jobs.service, pyspark_hudi",
    "hudi-operator[local]": "import hudi_operator.cli.local, hudi_spark.jobs.service",
}
"""What each distribution and each extra is for; the base install of hudi-table has tests of its
own."""
LARGE = {"hudi-spark", "hudi-operator[local]"}
"""300 MB of Spark, and built from source where that was not kept."""
BRINGS = {
    "hudi-table[query]": {"query"},
    "hudi-operator": {"status"},
    "hudi-spark": {"query"},
    "hudi-operator[local]": {"status", "local", "query"},
}
"""Verbs that hudictl shows then."""
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
    """The distributions that these requirements bring, their own requirements too; the project's
    own among them."""
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
        if name in PROJECTS:
            left += [Requirement(text) for extra in one.extras or {""} for text in needs(name, extra)]
            continue
        for text in metadata.requires(name) or ():
            inner = Requirement(text)
            extras = one.extras or {""}
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                inner.marker = None
                left.append(inner)
    return found


def install(place: Path, *what: str | Path) -> None:
    """Install into an environment, as the locks say: from what uv has kept of the set-up, else from
    the machine's index."""
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
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files that `make dist` writes."""
    folder: Path = tmp_path_factory.mktemp("dist")
    return build(folder)


@pytest.fixture(scope="module")
def environment(built: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The interpreter of a fresh environment by what is asked for (`hudi-table[query]`), made when
    it is first asked for: our wheels, and what they declare that they need."""
    wheels = {path.name.split("-")[0].replace("_", "-"): path for path in built if path.suffix == ".whl"}
    locks = [(ROOT / "requirements" / f"{name}.txt").read_text() for name in ("build", "dev")]
    pins = {found[1]: found[0] for text in locks for found in LOCKED.finditer(text)}

    @cache
    def made(asked: str) -> Path:
        place: Path = tmp_path_factory.mktemp("environment")
        subprocess.run([UV, "venv", "--quiet", "--clear", "--python", sys.executable, place], check=True)
        python = place / "bin" / "python"
        brought = needed([asked])
        names = sorted(brought - set(PROJECTS))
        listed = place / "locked.txt"
        # pyspark comes as a source: what builds it goes again.
        for group in (["setuptools"], names) if "pyspark" in names else (names,):
            listed.write_text("\n".join(pins[name] for name in group))
            install(python, "--require-hashes", "-r", listed)
        if "pyspark" in names:
            subprocess.run([UV, "pip", "uninstall", "--quiet", "--python", python, "setuptools"], check=True)
        install(python, *(wheels[name] for name in sorted(brought & set(PROJECTS))))
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
    python = environment("hudi-table")
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


def test_the_base_install_names_what_installs_a_library_that_is_missing(environment: Callable[[str], Path]) -> None:
    python = environment("hudi-table")
    brought_by = (
        ("to_pandas", "pandas"),
        ("to_polars", "polars"),
        ("to_duckdb", "query"),
        ("to_datafusion", "datafusion"),
    )
    for method, extra in brought_by:
        done = ran(python, "-c", f"{SCAN}scan().{method}()")
        assert f"pip install 'hudi-table[{extra}]' brings it" in done.stderr
    for engine, name in (("duckdb", "hudi-table[query]"), ("spark", "hudi-spark")):
        asked = ran(python, "-m", "hudi_table", "query", "select 1", "--table", "t=x", "--engine", engine)
        assert f"pip install '{name}'" in asked.stderr
    for verb, name in (("status", "hudi-operator"), ("local", "hudi-operator[local]")):
        asked = ran(python, "-m", "hudi_table", verb)
        assert asked.returncode != 0
        assert f"pip install '{name}' brings it" in asked.stderr


def test_the_operator_without_spark_names_what_brings_it(environment: Callable[[str], Path]) -> None:
    python = environment("hudi-operator")
    assert "local" not in listed(python)
    asked = ran(python, "-m", "hudi_table", "local")
    assert "pip install 'hudi-operator[local]' brings it" in asked.stderr


def test_verbs_and_engines_of_other_distributions_are_known_to_the_base_install() -> None:
    groups = entry_points()
    assert set(VERBS_ELSEWHERE) == set(groups["hudictl.verbs"])
    assert set(ENGINES_ELSEWHERE) == set(groups["hudictl.engines"])


def test_the_example_of_the_package_s_page_runs_on_the_base_install(
    environment: Callable[[str], Path], tmp_path: Path
) -> None:
    page = (ROOT / "distributions" / "hudi-table" / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    shown = f"{example}print(late.to_pylist())\nimport hudi_table; print(hudi_table.__version__)"
    done = subprocess.run(
        [environment("hudi-table"), "-I", "-c", shown], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["[{'flight_id': 'AA-1141'}]", __version__], done.stderr


def test_every_distribution_and_every_extra_is_tried() -> None:
    every = {f"{name}[{extra}]" for name in PROJECTS for extra in extras(name)} | set(PROJECTS)
    assert set(WITH) == every - {"hudi-table"}


@pytest.mark.parametrize(
    "asked", [pytest.param(asked, marks=pytest.mark.at_scale(2) if asked in LARGE else ()) for asked in WITH]
)
def test_what_is_installed_brings_all_that_its_part_imports(environment: Callable[[str], Path], asked: str) -> None:
    done = ran(environment(asked), "-c", f"{SCAN}{WITH[asked]}")
    assert done.returncode == 0, done.stderr
    assert listed(environment(asked)) >= BRINGS.get(asked, set())
