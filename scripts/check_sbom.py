"""Holds a bill of materials against the lock that its image was made from, and against
requirements/floors.toml; standard library only.

    python scripts/check_sbom.py build/sbom/hudi-spark.cdx.json requirements/spark.txt

Ends with 1 and a line for each part that is missing, that nobody locked, or that is too old.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ROOT / "requirements" / "floors.toml"
OWN = {"operator": {"hudi-table", "hudi-operator"}, "spark": {"hudi-table", "hudi-spark"}}
"""The distributions of ours that an image holds, by the name of its lock."""
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)([^\\\n]*)", re.MULTILINE)


def pins(lock: str) -> dict[str, tuple[str, bool]]:
    """Name → (version, whether it is wanted on every machine) of a lock."""
    return {normal(name): (version, ";" not in rest) for name, version, rest in PIN.findall(lock)}


def normal(name: str) -> str:
    """The one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def version_key(version: str) -> tuple[int, ...]:
    """Numbers of a version, to be compared."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def too_old(kind: str, parts: Iterable[tuple[str, str]]) -> list[str]:
    """The parts (name, version) of a kind (pypi, maven) that are below their floor."""
    floors: Mapping[str, Any] = tomllib.loads(FLOORS.read_text())[kind]
    return [
        f"{name} {version} is older than {floors[name]['least']}: {floors[name]['why']}"
        for name, version in parts
        if name in floors and version_key(version) < version_key(floors[name]["least"])
    ]


def judged(bill: Mapping[str, Any], lock: str, own: Set[str]) -> list[str]:
    """What is wrong with an image, by its bill. `own`: the distributions of ours that it holds."""
    parts: dict[str, list[tuple[str, str]]] = {"pypi": [], "maven": [], "deb": []}
    for part in bill["components"]:
        kind = part["purl"].partition(":")[2].partition("/")[0]
        parts[kind].append((part["name"], part.get("version", "")))
    locked, here = pins(lock), dict(parts["pypi"])
    wrong = [
        f"{name} {version} is in no lock"
        for name, version in parts["pypi"]
        if name not in own and locked.get(name, ("",))[0] != version
    ]
    wrong += [
        f"{name} {version} is locked and not there"
        for name, (version, always) in locked.items()
        if always and name not in here
    ]
    wrong += [f"{name} itself is not there" for name in sorted(own - set(here))]
    wrong += [] if parts["deb"] else ["no package of Debian is there"]
    hashes = [part for part in bill["components"] if part["purl"].startswith("pkg:maven/")]
    wrong += [f"{part['name']} has no hash" for part in hashes if not part.get("hashes")]
    return wrong + too_old("pypi", parts["pypi"]) + too_old("maven", parts["maven"])


def main() -> None:
    bill, lock = (Path(name) for name in sys.argv[1:3])
    if wrong := judged(json.loads(bill.read_text()), lock.read_text(), OWN[lock.stem]):
        sys.exit("\n".join([f"{bill}:", *wrong]))


if __name__ == "__main__":
    main()
