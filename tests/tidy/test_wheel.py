"""What an installed copy holds, seen in the files that `make dist` builds."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from hudi_table.version import __version__
from scripts.build_dist import build, urls
from tests.tidy.sources import ROOT, production_sources, project_files

HOLDS = {
    "hudi_table": {"hudi_table"},
    "hudi_spark": {"hudi_spark", "pyspark_hudi", "pyspark_org_apache_hudi"},
    "hudi_operator": {"hudi_operator"},
}
"""The packages of each distribution."""
REPOSITORY = "https://forge.example/somebody/hudi-operator"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder: Path = tmp_path_factory.mktemp("dist")
    return build(folder, REPOSITORY)


@pytest.fixture(scope="module")
def packed(built: list[Path]) -> dict[str, set[str]]:
    """Distribution → the files of its wheel."""
    return {path.name.split("-")[0]: set(zipfile.ZipFile(path).namelist()) for path in built if path.suffix == ".whl"}


def test_every_module_is_packed(packed: dict[str, set[str]]) -> None:
    modules = {source.path.partition("/")[2] for source in production_sources()}
    assert modules <= set().union(*packed.values())


def test_what_the_code_reads_at_run_time_is_packed(packed: dict[str, set[str]]) -> None:
    data = {
        name.partition("/")[2]
        for name in project_files()
        if name.startswith(("spark_app/", "operator/")) and not name.endswith(".py")
    }
    assert any(name.endswith(".avsc") for name in data)
    assert data <= set().union(*packed.values())
    assert {f"{name}/py.typed" for name in HOLDS} <= data


def test_nothing_but_its_packages_is_packed(packed: dict[str, set[str]]) -> None:
    assert set(packed) == set(HOLDS)
    for name, files in packed.items():
        tops = {file.partition("/")[0] for file in files}
        assert {top for top in tops if not top.endswith(".dist-info")} == HOLDS[name]
        assert not [file for file in files if "__pycache__" in file]


def test_each_distribution_carries_the_license_and_needs_the_others_of_its_own_version(built: list[Path]) -> None:
    for path in (path for path in built if path.suffix == ".whl"):
        with zipfile.ZipFile(path) as wheel:
            folder = f"{path.name.split('-')[0]}-{__version__}.dist-info"
            for name in ("LICENSE", "NOTICE"):
                assert wheel.read(f"{folder}/licenses/{name}") == (ROOT / name).read_bytes()
            needed = [
                line.split()[1]
                for line in wheel.read(f"{folder}/METADATA").decode().splitlines()
                if line.startswith("Requires-Dist: hudi-")
            ]
            own = "" if path.name.startswith("hudi_table") else f"hudi-table=={__version__}"
            assert all(need.rstrip(";").endswith(f"=={__version__}") for need in needed)
            assert bool(own) == (own in needed)


def test_each_distribution_says_where_its_sources_pages_and_issues_are(built: list[Path]) -> None:
    for path in (path for path in built if path.suffix == ".whl"):
        with zipfile.ZipFile(path) as wheel:
            (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
            lines = wheel.read(name).decode().splitlines()
        said = dict(
            line.removeprefix("Project-URL: ").split(", ") for line in lines if line.startswith("Project-URL: ")
        )
        assert said.keys() == {"Source", "Documentation", "Changelog", "Issues"}
        assert said["Source"] == REPOSITORY
        for address in said.values():
            page = address.removeprefix(REPOSITORY).removeprefix("/blob/main/")
            assert page in ("", "/issues") or (ROOT / page).exists()


@pytest.mark.parametrize(
    "wrong", ["forge.example/a/b", "http://forge.example/a/b", 'https://forge.example/a"\nname = "x', ""]
)
def test_project_urls_are_made_of_an_address_alone(wrong: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        urls(wrong)


def test_a_source_archive_holds_files_not_links(built: list[Path]) -> None:
    archives = [path for path in built if path.name.endswith(".tar.gz")]
    assert len(archives) == len(HOLDS)
    for path in archives:
        with tarfile.open(path) as archive:
            assert not [member.name for member in archive.getmembers() if not member.isfile()]


def test_a_package_index_would_take_them(built: list[Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_tag_of_another_version_is_not_built(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/build_dist.py", "--tag", "v9.9.9", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"v{__version__}" in done.stderr
    assert not list(tmp_path.iterdir())
