"""Which tests each shard of the long version takes, by one collection for all of them: this module
is the plugin of a `pytest --collect-only`, and what starts that.

The expression of a shard is evaluated as pytest itself does it for `-k`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression

from tests.support.selection import mark_thinned

ROOT = Path(__file__).resolve().parents[2]
_FOUND = "HUDI_SELECTIONS"


@dataclass(frozen=True, slots=True)
class Selections:
    """`tests`: all that are collected. `empty`: of which paths a shard takes no test, as (shard,
    path). `left`: the tests that no shard takes."""

    tests: frozenset[str]
    empty: frozenset[tuple[str, str]]
    left: frozenset[str]


def shards() -> list[dict[str, Any]]:
    """The tables of tests/shards.toml."""
    found: list[dict[str, Any]] = tomllib.loads((ROOT / "tests" / "shards.toml").read_text())["shard"]
    return found


def paths_of(shard: dict[str, Any]) -> list[str]:
    """The files and folders that a shard names."""
    return [each for each in shard["args"] if each.startswith("tests/")]


def scale_of(shard: dict[str, Any]) -> float:
    """Its HUDI_TEST_SCALE."""
    return float(shard.get("scale", 1))


def selections(paths: Iterable[str], scale: float) -> Selections:
    """What the shards take of the tests of these paths, collected at a scale."""
    with TemporaryDirectory() as folder:
        told = Path(folder) / "told.json"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", __name__, *paths],
            cwd=ROOT,
            env=os.environ | {_FOUND: str(told), "HUDI_TEST_SCALE": str(scale)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.exists(), done.stdout[-2_000:] + done.stderr[-2_000:]
        found = json.loads(told.read_text())
    return Selections(
        frozenset(found["tests"]), frozenset((shard, path) for shard, path in found["empty"]), frozenset(found["left"])
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before any are left out: a shard has a scale of its own."""
    if _FOUND not in os.environ:
        return
    mark_thinned(items)
    matchers = {item.nodeid: KeywordMatcher.from_item(item) for item in items}
    least = {item.nodeid: max((m.args[0] for m in item.iter_markers("at_scale")), default=0) for item in items}
    by_path: dict[str, list[str]] = defaultdict(list)
    for name in matchers:
        file = name.partition("::")[0]
        for path in (file, *map(str, Path(file).parents)):
            by_path[path].append(name)
    empty, taken = [], set()
    for shard in shards():
        for path in paths_of(shard):
            found = [name for name in by_path[path] if _takes(shard, matchers[name], least[name])]
            taken.update(found)
            if not found:
                empty.append((shard["name"], path))
    told = {"tests": [*matchers], "empty": empty, "left": [*(matchers.keys() - taken)]}
    Path(os.environ[_FOUND]).write_text(json.dumps(told))


def _takes(shard: dict[str, Any], matcher: KeywordMatcher, least: float) -> bool:
    args = shard["args"]
    chosen = args[args.index("-k") + 1] if "-k" in args else ""
    if least > scale_of(shard):
        return False
    return not chosen or Expression.compile(chosen).evaluate(matcher)
