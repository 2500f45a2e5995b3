"""What the repository as a whole holds to: no machine's paths, no index in the locks, an error page
for each error."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from hudi_operator import errors as operator_errors
from hudi_table import errors
from tests.support.distributions import PROJECTS
from tests.tidy.sources import ROOT, project_files

TEXT = (
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".txt",
    ".in",
    ".cfg",
    ".json",
    ".sh",
    "Makefile",
    "run",
    ".sha256",
    ".cff",
    ".editorconfig",
)

# What stands at the top, and nothing else: a test that takes "1g" for a location leaves a table there.
TOP = {
    *(
        ".ci",
        ".devcontainer",
        ".github",
        "bench",
        "charts",
        "config",
        "crds",
        "distributions",
        "docs",
        "e2e",
        "examples",
    ),
    *("image", "operator", "requirements", "scripts", "spark_app", "tests"),
    *(".dockerignore", ".editorconfig", ".gitignore", ".pre-commit-config.yaml", ".vale.ini"),
    *("CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"),
    *("Dockerfile", "LICENSE", "Makefile", "NOTICE", "mkdocs.yml", "pyproject.toml"),
}

# `hudictl explain` prints these, so they are part of the package.
PAGES = ROOT / "spark_app" / "hudi_table" / "cli" / "pages"


def error_classes() -> list[type[errors.HudiError]]:
    """Every class of the tree that a caller can meet: all but the signals between storage and its
    callers."""
    classes = [value for value in (vars(errors) | vars(operator_errors)).values() if isinstance(value, type)]
    tree = [value for value in classes if issubclass(value, errors.HudiError) and value is not errors.HudiError]
    return [error for error in tree if not (error.__doc__ or "").startswith("Storage signal:")]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_has_a_page(error: type[errors.HudiError]) -> None:
    page = PAGES / f"{error.name()}.md"
    assert page.exists(), f"write {page.relative_to(ROOT)}: what happened, why, and what to type"
    assert page.read_text().startswith(f"# {error.name()}\n")


def test_every_error_page_belongs_to_an_error() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {error.name() for error in error_classes()}


def test_no_path_of_a_machine_is_written_down() -> None:
    path = re.compile(r"(?<![\w.])/(?:work|root|home/(?!user\b|spark\b)\w+|Users)/")
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name in project_files()
        if name.endswith(TEXT) and not name.startswith("tests/data/") and name != "tests/tidy/test_repository.py"
        for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1)
        if path.search(line)
    ]
    assert not found, "\n".join(found)


def test_nothing_strays_to_the_top_of_the_repository() -> None:
    strays = sorted({name.partition("/")[0] for name in project_files()} - TOP)
    assert not strays, f"{', '.join(strays)}: written by accident? Remove it, or name it in TOP"


def test_every_table_of_the_repository_is_data_of_the_tests() -> None:
    tables = [name for name in project_files() if "/.hoodie/" in f"/{name}" and not name.startswith("tests/data/")]
    assert not tables, f"{', '.join(tables[:5])}: written by accident? Remove them, or keep them below tests/data"


def test_the_locks_name_no_package_index() -> None:
    for lock in (ROOT / "requirements").iterdir():
        assert "://" not in lock.read_text(), f"{lock.name} names an index; the machine's configuration decides"


def test_every_locked_package_carries_a_hash() -> None:
    for name in ("build", "dev", "hudi", "operator", "spark", "sbom"):
        packages = re.split(r"\n(?=[a-z0-9])", (ROOT / "requirements" / f"{name}.txt").read_text())
        pinned = [package for package in packages if "==" in package]
        assert pinned
        assert all("--hash=sha256:" in package for package in pinned)


def test_the_base_install_is_small() -> None:
    names = {re.split(r"[<>=\[]", need)[0] for need in PROJECTS["hudi-table"]["dependencies"]}
    assert names == {"pyarrow", "numpy", "fastavro", "obstore", "pyyaml"}


@pytest.mark.parametrize("package", ["hudi_table", "hudi_spark", "hudi_operator"])
def test_a_package_imports_from_the_root_of_the_repository(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {package}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
