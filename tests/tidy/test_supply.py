"""Where the parts come from: every package by hash, every jar by digest, nothing older than the
floors, images without root."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from scripts.check_sbom import OWN, judged, pins, too_old
from tests.tidy.sources import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_package_of_every_lock_carries_a_hash(lock: Path) -> None:
    packages = [each for each in re.split(r"\n(?=[a-zA-Z0-9])", lock.read_text()) if "==" in each.partition("\n")[0]]
    assert packages
    assert not [each.partition("\n")[0] for each in packages if "--hash=sha256:" not in each]


def test_whatever_installs_packages_asks_for_their_hashes() -> None:
    """pip in images and environments, and uv where the main environment is made."""
    for name in ("Dockerfile", "image/install-locked", "scripts/setup_env.py", "Makefile"):
        text = re.sub(r"\\\n", " ", (ROOT / name).read_text())
        installs = [
            line for line in text.splitlines() if re.search(r"pip install|\"install\"", line) and " -r " in f"{line} "
        ]
        assert all("--require-hashes" in line for line in installs), name


@pytest.mark.parametrize("pins", ["requirements/jars.sha256", "tests/interop/oracles.sha256"])
def test_every_jar_of_the_tests_is_pinned_by_its_digest(pins: str) -> None:
    lines = [line for line in (ROOT / pins).read_text().splitlines() if line and line[0] != "#"]
    assert lines
    assert all(re.fullmatch(r"[0-9a-f]{64}  ?\S+\.jar", line) for line in lines)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_nothing_that_is_locked_is_older_than_its_floor(lock: Path) -> None:
    assert too_old("pypi", [(name, version) for name, (version, _) in pins(lock.read_text()).items()]) == []


def test_no_jar_of_spark_is_older_than_its_floor() -> None:
    folder = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    named = [re.fullmatch(r"(.+?)-(\d.*)", path.stem) for path in folder.glob("*.jar")]
    parts = [(found[1], found[2]) for found in named if found]
    assert len(parts) > 100
    assert too_old("maven", parts) == []


def test_no_jar_of_hudi_gets_into_an_image() -> None:
    """They carry old parts of their own, and are for tests alone."""
    assert "hudi.txt" not in DOCKERFILE
    assert "jars.sha256" not in DOCKERFILE


def test_images_take_a_base_by_digest_and_run_under_a_number() -> None:
    assert re.search(r"^ARG BASE=\S+$", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)[0] == "${BASE}"
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)
    final = [stage for stage in stages if re.match(r"python AS (operator|spark)\n", stage)]
    assert len(final) == 2
    assert all(re.search(r"^USER [1-9]\d*:[1-9]\d*$", stage, re.MULTILINE) for stage in final)


def bill(**changes: Any) -> dict[str, Any]:
    """Of a little image that is right."""
    parts = {
        "a": ("pypi", "1.0"),
        "hudi-table": ("pypi", "0.1"),
        "hudi-operator": ("pypi", "0.1"),
        "dpkg": ("deb/debian", "1"),
        "avro": ("maven/x", "1.12.1"),
    }
    return {
        "components": [
            {"name": name, "version": version, "purl": f"pkg:{kind}/{name}@{version}", "hashes": [{}]}
            for name, (kind, version) in (parts | changes).items()
            if version
        ]
    }


LOCK = "a==1.0 \\\n    --hash=sha256:0\nwin==2 ; sys_platform == 'win32' \\\n    --hash=sha256:0\n"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"b": ("pypi", "3")}, ["b 3 is in no lock"]),
        ({"a": ("pypi", "")}, ["a 1.0 is locked and not there"]),
        ({"hudi-operator": ("pypi", "")}, ["hudi-operator itself is not there"]),
        ({"avro": ("maven/x", "1.11.4")}, ["avro 1.11.4 is older than 1.12.1: CVE-2025-33042; 1.11.5 of the older line"]),
        ({"dpkg": ("deb/debian", "")}, ["no package of Debian is there"]),
    ],
)  # fmt: skip
def test_what_an_image_holds_is_held_against_its_lock_and_the_floors(changes: dict[str, Any], said: list[str]) -> None:
    assert judged(bill(**changes), LOCK, OWN["operator"]) == said
