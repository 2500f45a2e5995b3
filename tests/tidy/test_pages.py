"""The pages: every link inside the repository leads somewhere, and every page can be reached from
the README."""

from __future__ import annotations

import posixpath
import re

from tests.tidy.sources import ROOT, project_files

LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")


def links(page: str) -> set[str]:
    """The paths that a page links to, relative to the root."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(), flags=re.DOTALL)
    targets = {target for target in LINK.findall(text) if "://" not in target and not target.startswith("mailto:")}
    return {posixpath.normpath(posixpath.join(posixpath.dirname(page), target)) for target in targets}


def pages() -> list[str]:
    return [name for name in project_files() if name.endswith(".md") and not name.startswith(("tests/", "spark_app/"))]


def test_every_link_leads_somewhere() -> None:
    dead = {page: sorted(gone) for page in pages() if (gone := {to for to in links(page) if not (ROOT / to).exists()})}
    assert not dead


def test_every_page_can_be_reached_from_the_readme() -> None:
    known, open_ = {"README.md"}, ["README.md"]
    while open_:
        found = {to for to in links(open_.pop()) if to.endswith(".md") and (ROOT / to).exists()} - known
        known |= found
        open_ += found
    assert not set(pages()) - known


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
WALKS = ("A write", "A scan", "A reconcile", "A service")


def test_the_architecture_names_every_package_once_and_no_other() -> None:
    files = [name for name in project_files() if name.startswith(("spark_app/", "operator/"))]
    packages = [
        posixpath.dirname(name).partition("/")[2].replace("/", ".") for name in files if name.endswith("/__init__.py")
    ]
    assert sorted(re.findall(r"^\| `([\w.]+)` \| .* \| .*\|$", ARCHITECTURE, re.MULTILINE)) == sorted(packages)


def test_the_architecture_names_modules_that_are_there() -> None:
    files = [f"/{name}" for name in project_files() if name.startswith(("spark_app/", "operator/"))]
    assert not {
        name
        for name in re.findall(r"`([\w/]+\.py)`", ARCHITECTURE)
        if not any(file.endswith(f"/{name}") for file in files)
    }


def test_a_walk_through_the_code_is_short() -> None:
    parts = dict(part.split("\n", 1) for part in ARCHITECTURE.split("\n## ")[1:])
    assert not {walk for walk in WALKS if len([line for line in parts[walk].splitlines() if line.strip()]) > 15}
