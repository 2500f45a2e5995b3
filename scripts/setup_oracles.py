"""Fetches the further releases of Apache Hudi that long tests drive, tests/interop/oracles.sha256,
beside the bundles of `make interop-env`; instant when done.

Each is 80 to 110 MB, and no quick test needs one: a test that asks for one fetches it.

    python -m scripts.setup_oracles [VERSION ...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.setup_env import HUDI_BUNDLE, IVY, ROOT, pinned_jars, resolve, wrong_jars

PINS = ROOT / "tests" / "interop" / "oracles.sha256"


def pinned_versions() -> dict[str, str]:
    """Version → the file name of its bundle."""
    return {name.removesuffix(".jar").rpartition("-")[2]: name for name in pinned_jars(PINS)}


def fetch(version: str, venv: Path = ROOT / ".venv-hudi", ivy: Path = IVY) -> None:
    """Fetches the bundle of `version` if it is missing or differs from its pin; one that still
    differs ends the process."""
    name = pinned_versions()[version]
    if name not in wrong_jars(PINS, ivy):
        return
    print(f"Fetching {HUDI_BUNDLE}:{version}", flush=True)
    (ivy / "jars" / name).unlink(missing_ok=True)
    resolve(venv, f"{HUDI_BUNDLE}:{version}", ivy)
    if name in wrong_jars(PINS, ivy):
        sys.exit(f"{name} in {ivy / 'jars'} differs from {PINS.relative_to(ROOT)}: do not use that jar.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of {', '.join(pinned_versions())}; all")
    for version in parser.parse_args().versions or pinned_versions():
        fetch(version)


if __name__ == "__main__":
    main()
