"""The project's Python files, parsed once for all tidy tests."""

from __future__ import annotations

import ast
import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = ("spark_app/", "operator/")
SOURCE_ROOTS = ("spark_app", "operator")


@dataclass(frozen=True, slots=True)
class Source:
    path: str
    """Relative to the root of the repository, with slashes."""
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parse(self.text)

    @property
    def is_production(self) -> bool:
        return self.path.startswith(PRODUCTION)

    @property
    def module(self) -> str:
        """The dotted name by which production code is imported."""
        parts = Path(self.path).with_suffix("").parts
        parts = parts[1:] if parts[0] in SOURCE_ROOTS else parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@functools.cache
def project_files() -> tuple[str, ...]:
    """Every file that git tracks or would track, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return tuple(name for name in sorted(set(listed.split("\0"))) if name and (ROOT / name).is_file())


@functools.cache
def python_sources() -> tuple[Source, ...]:
    return tuple(Source(name, (ROOT / name).read_text()) for name in project_files() if name.endswith(".py"))


def production_sources() -> tuple[Source, ...]:
    return tuple(source for source in python_sources() if source.is_production)
