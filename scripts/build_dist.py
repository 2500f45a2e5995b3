"""Builds what is published: a source archive and a wheel of each distribution, checked as a package
index checks them.

    python scripts/build_dist.py [--out FOLDER] [--tag TAG] [--repository URL]

`distributions/` links to the sources, which no archive may do: each is built from a copy in which a
link is what it leads to, and the wheel from the archive. With `--tag v1.2.3` it first makes sure
that this is the version of the sources. `--repository` becomes the project's URLs: the sources
themselves do not know on which forge they lie, the release does.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
OWN = [ROOT / "distributions" / name for name in ("hudi-table", "hudi-spark", "hudi-operator")]
UV = Path(sys.executable).with_name("uv")


def version() -> str:
    """The version of all distributions."""
    text = (ROOT / "spark_app" / "hudi_table" / "version.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert found is not None, "hudi_table/version.py names no version"
    return found[1]


def urls(repository: str) -> str:
    """The project's URLs as a table of pyproject.toml. Raises ValueError for what is no address on
    the web."""
    if not re.fullmatch(r"https://[\w.:-]+(?:/[\w.~-]+)+", repository):
        raise ValueError(f"the repository {repository!r} is no address such as https://forge.example/owner/name")
    places = {
        "Source": "",
        "Documentation": "/blob/main/docs/index.md",
        "Changelog": "/blob/main/CHANGELOG.md",
        "Issues": "/issues",
    }
    return "\n".join(("", "[project.urls]", *(f'{name} = "{repository}{place}"' for name, place in places.items()), ""))


def build(out: Path, repository: str = "") -> list[Path]:
    """Write the files of every distribution to `out`; what lay there of another build goes. Returns
    them, sorted."""
    more = urls(repository) if repository else ""
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("hudi_*.whl"), *out.glob("hudi_*.tar.gz")):
        old.unlink()
    with TemporaryDirectory(prefix="hudi-dist-") as scratch:
        for folder in OWN:
            copy = Path(scratch, folder.name)
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
            with (copy / "pyproject.toml").open("a", encoding="utf-8") as settings:
                settings.write(more)
            # The locked build tools of this environment, never whatever is newest.
            options = ("--quiet", "--no-build-isolation", "--python", sys.executable)
            subprocess.run([UV, "build", *options, "--out-dir", out, copy], check=True)
    (out / ".gitignore").unlink(missing_ok=True)
    return sorted((*out.glob("hudi_*.whl"), *out.glob("hudi_*.tar.gz")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--tag", help="the tag that is released")
    parser.add_argument("--repository", default="", metavar="URL", help="where the sources lie, for the project's URLs")
    parsed = parser.parse_args()
    if parsed.tag and parsed.tag != f"v{version()}":
        sys.exit(f"the tag {parsed.tag} is not v{version()}, the version in spark_app/hudi_table/version.py")
    built = build(parsed.out, parsed.repository)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built)], check=True)
    for path in built:
        print(path)


if __name__ == "__main__":
    main()
