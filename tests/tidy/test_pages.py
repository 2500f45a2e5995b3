"""The pages: every link inside the repository leads somewhere, and every page can be reached from the README."""

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


def test_the_architecture_names_every_package_and_each_module_once() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    files = [name for name in project_files() if name.startswith(("spark_app/", "operator/")) and name.endswith(".py")]
    packages = {posixpath.basename(posixpath.dirname(name)) for name in files}
    assert not {each for each in packages if not re.search(rf"[`/]{each}[`/]", page)}
    for part in re.split(r"^## ", page, flags=re.MULTILINE):
        layer, named = "", []
        for row in re.findall(r"^\|([^|]*)\|([^|]*)\|", part, re.MULTILINE):
            layer = row[0].strip(" `") or layer
            named += [
                (layer if not layer.endswith(".py") else "", name)
                for name in re.findall(r"`(\w+\.py)`", f"{row[0]}{row[1]}")
            ]
        assert len(named) == len(set(named)), f"twice: {sorted({each for each in named if named.count(each) > 1})}"
        gone = [
            (layer, name)
            for layer, name in named
            if not any(path.endswith(f"/{name}") and f"/{layer}" in path for path in files)
        ]
        assert not gone
