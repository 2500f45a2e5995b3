"""Code blocks of README and docs: Python parses and names what exists, YAML is taken by the definitions, commands exist."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator

import pytest
import yaml

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import SPECS
from hudi_table.cli.program import main as hudictl
from tests.tidy.sources import ROOT, project_files

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OURS = ("hudi_table", "hudi_spark", "hudi_operator")


def blocks(*languages: str) -> Iterator[tuple[str, str]]:
    """(page and number, text) of each block in one of some languages."""
    for page in project_files():
        if page == "README.md" or (page.startswith("docs/") and page.endswith(".md")):
            for number, (language, text) in enumerate(FENCE.findall((ROOT / page).read_text()), 1):
                if language in languages:
                    yield f"{page}#{number}", text


@pytest.mark.parametrize(("place", "text"), [*blocks("python")])
def test_python_parses_and_imports_what_exists(place: str, text: str) -> None:
    tree = ast.parse(text.replace("…", "..."), place)
    missing = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OURS:
            module = importlib.import_module(str(node.module))
            missing += [f"{node.module}.{each.name}" for each in node.names if not hasattr(module, each.name)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "hudi_table":
            missing += [] if hasattr(importlib.import_module("hudi_table"), node.attr) else [f"hudi_table.{node.attr}"]
    assert not missing


@pytest.mark.parametrize(("place", "text"), [*blocks("yaml")])
def test_manifests_are_taken_by_the_definitions(place: str, text: str) -> None:
    for document in yaml.safe_load_all(text):
        if isinstance(document, dict) and document.get("kind") in SPECS and "spec" in document:
            _, errors = parse(SPECS[document["kind"]], document["spec"], "spec")
            assert not errors, place


def test_every_target_of_make_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {
        (place, word)
        for place, text in blocks("", "bash", "sh", "console")
        for line in re.findall(r"^(?:\$ )?make ([^#\n]*)", text, re.MULTILINE)
        for word in line.split()
        if re.fullmatch("[a-z][a-z0-9-]*", word)
    }
    assert not {each for each in asked if each[1] not in targets}


def test_every_verb_of_hudictl_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert hudictl(["--help"]) == 0
    known = capsys.readouterr().out
    asked = {
        (place, verb)
        for place, text in blocks("", "bash", "sh", "console")
        for verb in re.findall(r"^(?:\$ )?hudictl ([a-z]+)", text, re.MULTILINE)
    }
    assert asked
    assert not {each for each in asked if not re.search(rf"\b{each[1]}\b", known)}
