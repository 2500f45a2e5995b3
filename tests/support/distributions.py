"""What `distributions/` declares, read once for all tests."""

from __future__ import annotations

import tomllib
from typing import Any

from scripts.setup_env import OWN

_DECLARED = {folder.name: tomllib.loads((folder / "pyproject.toml").read_text("utf-8")) for folder in OWN}
PROJECTS: dict[str, dict[str, Any]] = {name: declared["project"] for name, declared in _DECLARED.items()}
"""The table `project` of each distribution by its name."""


def needs(name: str, extra: str = "") -> list[str]:
    """What a distribution declares that it needs, with one extra of it; the project's own
    distributions come by their bare names."""
    project, hook = (
        PROJECTS[name],
        _DECLARED[name]["tool"]["hatch"].get("metadata", {}).get("hooks", {}).get("custom", {}),
    )
    base = project["dependencies"] if "dependencies" in project else ["hudi-table", *hook["dependencies"]]
    more = project.get("optional-dependencies", {}).get(extra, [])
    own = hook.get("own-extras", {})
    return [*base, *more, *([own[extra]] if extra in own else [])]


def extras(name: str) -> list[str]:
    """The extras of a distribution."""
    hook = _DECLARED[name]["tool"]["hatch"].get("metadata", {}).get("hooks", {}).get("custom", {})
    return [*PROJECTS[name].get("optional-dependencies", {}), *hook.get("own-extras", {})]


def entry_points() -> dict[str, dict[str, str]]:
    """Group → name → value, of all distributions."""
    found: dict[str, dict[str, str]] = {}
    for project in PROJECTS.values():
        for group, entries in project.get("entry-points", {}).items():
            found.setdefault(group, {}).update(entries)
    return found
