"""Packages: small enough to search, in one direction, each with a word on what belongs in it and
where to begin."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.tidy.sources import Source, production_sources

MODULES_MAX = 15
BY_NAME = ("pyspark_hudi", "pyspark_org_apache_hudi")
"""Packages of one line, which Spark finds by their names."""


def packages() -> list[Source]:
    return [source for source in production_sources() if source.path.endswith("/__init__.py")]


def modules() -> list[Source]:
    return [source for source in production_sources() if not source.path.endswith("/__init__.py")]


def imports(source: Source, known: set[str]) -> Iterator[str]:
    """The modules and packages of the project that a file imports, wherever in it, for annotations
    too."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in named]
        else:
            continue
        yield from (name for name in names if name in known)


def siblings(imported: Mapping[str, Iterable[str]]) -> dict[str, dict[str, set[str]]]:
    """Package → child → the children of the same package that it, or anything in it, imports."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importer, names in imported.items():
        for name in names:
            here, there = importer.split("."), name.split(".")
            common = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None)
            if common is not None:
                found[".".join(here[:common])][here[common]].add(there[common])
    return found


def circle(arrows: Mapping[str, set[str]]) -> list[str]:
    """The nodes that are left once what imports nothing that is left is taken away, again and
    again."""
    left = {node: set(targets) for node, targets in arrows.items()}
    while free := [node for node in left if not left[node] & left.keys()]:
        for node in free:
            del left[node]
    return sorted(left)


def test_no_package_or_module_imports_what_imports_it() -> None:
    """At each level of the tree the children of a package, modules and packages alike, have an
    order."""
    known = {source.module for source in production_sources()}
    imported = {source.module: set(imports(source, known)) for source in production_sources()}
    circles = {package: found for package, arrows in siblings(imported).items() if (found := circle(arrows))}
    assert not circles, f"they import each other in a circle: {circles}"


@pytest.mark.parametrize(
    "imported",
    [
        {"a.b": ["a.c"], "a.c": ["a.b"]},
        {"a.b.one": ["a.c"], "a.c": ["a.b.two"]},
        {"a.b": ["a.c"], "a.c": ["a.d"], "a.d": ["a.b"]},
    ],
)
def test_a_circle_is_seen(imported: dict[str, list[str]]) -> None:
    assert circle(siblings(imported)["a"])


def test_no_folder_holds_more_modules_than_a_stranger_can_search() -> None:
    counts = Counter(source.path.rpartition("/")[0] for source in modules())
    assert not {folder: count for folder, count in counts.items() if count > MODULES_MAX}


@pytest.mark.parametrize(
    "package", [each for each in packages() if each.module not in BY_NAME], ids=lambda each: each.module
)
def test_a_package_says_where_to_begin_and_the_place_exists(package: Source) -> None:
    said = ast.get_docstring(package.tree) or ""
    _, found, rest = said.partition("Begin with `")
    assert found, "its docstring ends with where to begin reading: Begin with `x.py`"
    folder, place = package.path.rpartition("/")[0], rest.partition("`")[0]
    assert f"{folder}/{place}" in {source.path for source in modules()}
