"""What a forge, an editor and a reader of the repository take up: each file parses, and what it
names is there."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.distributions import extras
from tests.tidy.sources import ROOT, project_files

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
MAY_WRITE = {
    ("release.yaml", "publish"): {"id-token"},
    ("images.yaml", "images"): {"packages", "id-token", "attestations"},
}
"""What a job may write, beside reading the sources."""
WANTED = (
    ".devcontainer/devcontainer.json", ".editorconfig", ".github/ISSUE_TEMPLATE/bug.yml", ".github/PULL_REQUEST_TEMPLATE.md",
    ".pre-commit-config.yaml", "CITATION.cff", "CODE_OF_CONDUCT.md", "SECURITY.md",
)  # fmt: skip


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


def commands(workflow: dict[str, Any]) -> list[str]:
    """Every line that a workflow runs."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [line for step in steps if "run" in step for line in step["run"].splitlines()]


def targets(line: str) -> list[str]:
    """The make targets of a command line."""
    calls = re.findall(r"(?:^|&& )make((?: [^&|;]+)?)", line)
    return [word for call in calls for word in re.sub(r'\w+=("[^"]*"|\S+)', "", call).split()]


def every_target() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_file_of_settings_parses() -> None:
    readers: dict[tuple[str, ...], Callable[[str], Any]] = {
        (".yaml", ".yml", ".cff"): lambda text: list(yaml.safe_load_all(text)),
        (".json",): json.loads,
        (".toml",): tomllib.loads,
        (".editorconfig",): lambda text: configparser.ConfigParser().read_string(f"[top]\n{text}"),
    }
    names = [
        name for name in project_files() if not name.startswith(("tests/data/", "charts/hudi-operator/templates/"))
    ]
    read = 0
    for suffixes, reader in readers.items():
        for name in names:
            if name.endswith(suffixes) and "/templates/" not in name:
                reader((ROOT / name).read_text("utf-8"))
                read += 1
    assert read > 20
    assert set(WANTED) <= set(names)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_exist(path: Path) -> None:
    called = {target for line in commands(loaded(path)) for target in targets(line)}
    assert called
    assert called <= every_target()


def test_hooks_call_targets_that_exist_and_tools_of_the_environment() -> None:
    hooks = [hook for repo in loaded(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    for hook in hooks:
        program, *rest = hook["entry"].split()
        assert program.startswith(".venv/bin/") or (program == "make" and set(rest) <= every_target())
    made = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())["postCreateCommand"]
    assert set(targets(made)) <= every_target()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_reads_unless_it_must_write(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        writes = {right for right, how in job.get("permissions", {}).items() if how == "write"}
        assert writes == MAY_WRITE.get((path.name, name), set())
        assert job["timeout-minutes"] <= 120
    # Under that event a stranger's change runs with the repository's own rights.
    assert "pull_request_target" not in path.read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_versions_of_actions_and_runs_no_text_of_a_stranger(path: Path) -> None:
    workflow = loaded(path)
    used = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used
    for action in used:
        assert re.search(r"@(v\d+|release/v\d+|[0-9a-f]{40})", action), action
    # A name of a branch or a tag may hold quotes: it reaches a shell as a variable.
    assert not [line for line in commands(workflow) if "${{" in line]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("make check", ["check"]),
        ('make dist TAG="$GITHUB_REF_NAME"', ["dist"]),
        ("make options && git diff --exit-code", ["options"]),
        ('make test TESTS="tests/pages tests/tidy"', ["test"]),
        ("docker push x", []),
    ],
)
def test_targets_are_read_off_a_command_line(line: str, found: list[str]) -> None:
    assert targets(line) == found


@pytest.mark.parametrize(
    "form", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_a_form_has_what_a_forge_asks_for(form: Path) -> None:
    asked = loaded(form)
    assert {"name", "description", "body"} <= set(asked)
    own = [part["id"] for part in asked["body"] if part["type"] != "markdown"]
    assert len(own) == len(set(own))


def test_the_citation_has_what_its_format_requires() -> None:
    cited = loaded(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["license"] == "Apache-2.0"


def test_every_extra_that_is_named_exists() -> None:
    """In messages, docstrings and pages."""
    named = {
        found
        for name in project_files()
        if name.endswith((".py", ".md")) and not name.startswith(("tests/", "docs/results/"))
        for found in re.findall(r"(hudi-(?:table|spark|operator))\[(\w+)\]", (ROOT / name).read_text("utf-8"))
    }
    assert len(named) > 5
    assert not {(name, extra) for name, extra in named if extra not in extras(name)}
