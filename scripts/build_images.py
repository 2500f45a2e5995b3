"""Builds the images of the Dockerfile, with docker, podman or buildah, whichever is there; standard
library only.

    python scripts/build_images.py [--base IMAGE] [--tag TAG] [operator] [spark]

With buildah, where the base cannot be pulled, one is made of Debian's packages by mmdebstrap and
given the base's name. What the machine's pip is told (an index, a certificate authority) is handed
to the build as secrets, so that none of it stays in a layer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = "spark_app/hudi_table/version.py"
TARGETS = {"operator": "localhost/hudi-operator", "spark": "localhost/hudi-spark"}
PULL_SECONDS = 120
AUTHORITY = "/run/secrets/authority.crt"
SLIM = ("path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*", "path-exclude=/usr/share/locale/*",
        "path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright")  # fmt: skip
"""What Debian leaves out of its own slim image."""


def find_tool() -> str:
    """The first builder that works; ends the run where there is none, saying what to install."""
    named = os.environ.get("TOOL")
    for tool in [named] if named else ["docker", "podman", "buildah"]:
        probe = [tool, "info"]
        if shutil.which(tool) and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return tool
    sys.exit(f"{named or 'None of docker, podman and buildah'} works here: install one, or name one with TOOL=…")


def default_base() -> str:
    """The base that the Dockerfile names."""
    found = re.search(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None, "the Dockerfile names no base"
    return found[1]


def ensure_base(base: str) -> None:
    """For buildah: the base is there, pulled or made of Debian's packages."""
    if run("buildah", "inspect", "--type", "image", base, quiet=True):
        return
    try:
        if run("buildah", "pull", "--quiet", base, quiet=True, seconds=PULL_SECONDS):
            return
    except subprocess.TimeoutExpired:
        pass
    if shutil.which("mmdebstrap") is None:
        sys.exit(f"{base} cannot be pulled, and there is no mmdebstrap to make one: apt-get install mmdebstrap")
    say(f"{base} cannot be pulled: making it of Debian's packages")
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--dpkgopt={option}" for option in SLIM]
        need("mmdebstrap", "--quiet", "--variant=minbase", *options, "bookworm", f"{folder}/base.tar")
        Path(folder, "Dockerfile").write_text('FROM scratch\nADD base.tar /\nCMD ["bash"]\n')
        need("buildah", "bud", "--quiet", "--isolation", "chroot", "--tag", base, folder)


def pip_settings(folder: Path) -> list[str]:
    """Options of a build that hand on what this machine's pip is told."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    variables = dict(line.split("=", 1) for line in said.stdout.splitlines() if "=" in line)
    settings = {name.rpartition(".")[2]: value.strip("'\"") for name, value in variables.items()}
    kept: dict[str, str] = {
        name: settings[name] for name in ("index-url", "extra-index-url", "trusted-host", "timeout") if name in settings
    }
    options = []
    if authority := settings.get("cert"):
        kept["cert"] = AUTHORITY
        options += ["--secret", f"id=authority,src={authority}"]
    if not kept:
        return options
    lines = "".join(f"{name} = {value}\n" for name, value in kept.items())
    (folder / "pip.conf").write_text(f"[global]\n{lines}")
    return [*options, "--secret", f"id=pip,src={folder / 'pip.conf'}"]


def build(tool: str, target: str, base: str, tag: str) -> str:
    """One image; its name."""
    name = f"{TARGETS[target]}:{tag}"
    began = time.monotonic()
    version = re.findall(r'^__version__ = "(.+)"$', (ROOT / VERSION).read_text(), re.MULTILINE)[0]
    seen = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    settings = {"BASE": base, "VERSION": version, "REVISION": seen.stdout.strip() or "unknown"}
    arguments = [part for key, value in settings.items() for part in ("--build-arg", f"{key}={value}")]
    command = {
        "docker": ["docker", "build"],
        "podman": ["podman", "build", "--layers"],
        "buildah": ["buildah", "bud", "--layers", "--isolation", os.environ.get("BUILDAH_ISOLATION", "chroot")],
    }[tool]
    with tempfile.TemporaryDirectory() as folder:
        need(*command, *arguments, *pip_settings(Path(folder)), "--target", target, "--tag", name, str(ROOT))
    say(f"{name}: {time.monotonic() - began:.0f} s")
    return name


def run(*command: str, quiet: bool = False, seconds: float | None = None) -> bool:
    """Whether a command succeeded."""
    done = subprocess.run(command, cwd=ROOT, capture_output=quiet, timeout=seconds, check=False)
    return done.returncode == 0


def need(*command: str) -> None:
    """Run a command; its failure ends the run."""
    if not run(*command):
        sys.exit(f"Stopped: {' '.join(command)} failed.")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--base", default=os.environ.get("BASE") or default_base())
    parser.add_argument("--tag", default=os.environ.get("TAG") or "dev")
    parsed = parser.parse_args()
    if unknown := set(parsed.targets) - set(TARGETS):
        parser.error(f"{', '.join(sorted(unknown))}: a target is one of {', '.join(TARGETS)}")
    tool = find_tool()
    if tool == "buildah":
        ensure_base(parsed.base)
    for target in parsed.targets:
        print(build(tool, target, parsed.base, parsed.tag))


if __name__ == "__main__":
    main()
