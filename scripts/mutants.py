"""Changes the code in random places, one at a time, and tells which changes the quick tests notice: docs/results/mutants.md and .json.

cosmic-ray makes the mutants. A module is drawn by its length, then a kind of change, then a place. A mutant that differs in nothing
but annotations is drawn anew. Its tests are those that mention the module and those of the folder that mirrors its own, if they call what is
changed (`mutant_tests.py`). What passes all of them runs once more with `--scale`, the counts of `make test-full`: so the report tells what the smaller
counts of `make test` miss. A hanging test notices, too. The tree must be clean: mutants are written into it and taken back.

A run of the same seed on the same sources goes on where the last one ended: `--count 20`, then `--count 40`, are 40 mutants in two parts.

    .venv-mutants/bin/python -m scripts.mutants [--count N] [--seed N] [--scale N] [--files N]
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from scripts.mutant_tests import Baselines, digest, grows, run, tests_of

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "docs" / "results" / "mutants"
HOMES = ("spark_app/hudi_table", "spark_app/hudi_spark", "operator/hudi_operator")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change, and what became of it. `fate`: noticed, noticed at scale, missed, or untested (no test is meant for the module)."""

    module: str
    change: str
    line: int
    was: str
    became: str
    fate: str = ""
    test: str = ""
    seconds: float = 0
    cpu: float = 0


class _NoAnnotations(ast.NodeTransformer):
    """What is left of a module when it runs: annotations are never looked at (`from __future__ import annotations`)."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def running(code: str) -> str:
    """The code without what does not run."""
    return ast.dump(_NoAnnotations().visit(ast.parse(code)))


def compiles(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def drawn(chance: random.Random) -> Iterator[tuple[Path, str, Mutant]]:
    """Mutants, each with its file and the file's changed text."""
    modules = [path for home in HOMES for path in sorted((ROOT / home).rglob("*.py")) if path.name != "__init__.py"]
    lengths = [len(path.read_text().splitlines()) for path in modules]
    kinds: dict[str, list[str]] = {}
    for name in operator_names():
        if "Variable" in name:  # These want to be told names.
            continue
        # `core/ReplaceBinaryOperator_Add_Sub`: by what it replaces.
        kinds.setdefault("_".join(name.split("_")[:2]), []).append(name)
    while True:
        (path,) = chance.choices(modules, lengths)
        code = path.read_text()
        nodes = list(ast_nodes(get_ast(code)))
        for kind in chance.sample(sorted(kinds), len(kinds)):
            name = chance.choice(kinds[kind])
            operator = get_operator(name)()
            places = sum(1 for node in nodes for _ in operator.mutation_positions(node))
            try:
                changed = mutate_code(code, operator, chance.randrange(places)) if places else None
            except AttributeError:  # cosmic-ray's replacer of exceptions does not know `except a.B`
                continue
            if changed is None or not compiles(changed) or running(changed) == running(code):
                continue
            pairs = enumerate(zip(code.splitlines(), changed.splitlines(), strict=False), 1)
            line, was, became = next((n, a.strip(), b.strip()) for n, (a, b) in pairs if a != b)
            yield path, changed, Mutant(path.relative_to(ROOT).as_posix(), name.split("/")[1], line, was, became)
            break


def tried(path: Path, changed: str, mutant: Mutant, tests: list[str], scale: float, baselines: Baselines) -> Mutant:
    """The mutant with its fate. The nearest file of tests that calls what is changed is asked alone: mostly it notices, and the others are not
    even begun. Only of what passes all are those whose counts grow asked again."""
    asking = (test for test in tests if baselines.of(test).reaches(path, mutant.line))
    code, asked = path.read_text(), list[str]()
    found = Mutant(**{**asdict(mutant), "fate": "missed" if tests else "untested"})
    for step in ("nearest", "others", "at scale"):
        if step == "at scale":
            some, by = [test for test in asked if grows(test)] if scale > 1 else [], scale
        else:
            some, by = list(islice(asking, 1 if step == "nearest" else None)), 1.0
            asked += some
        if not some:
            continue
        usual = baselines.together(some)
        try:
            path.write_text(changed)
            ran = run(some, by, usual)
        finally:
            path.write_text(code)
        found = replace(found, seconds=round(found.seconds + ran.seconds, 1), cpu=round(found.cpu + ran.cpu, 1))
        if ran.failed:
            return replace(found, fate="noticed at scale" if step == "at scale" else "noticed", test=ran.failed)
    return found


def head() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def earlier(document: dict[str, Any]) -> list[Mutant]:
    """Those that an earlier part of this run tried: of the same sources, drawn by the same seed."""
    there = REPORT.with_suffix(".json")
    known = json.loads(there.read_text()) if there.exists() else {}
    same = all(known.get(name) == document[name] for name in ("sources", "seed", "scale", "files"))
    return [Mutant(**mutant) for mutant in known["mutants"]] if same else []


def write_report(document: dict[str, Any], mutants: list[Mutant]) -> None:
    """The JSON and its page."""
    commit, seed, scale = document["commit"], document["seed"], document["scale"]
    each = sum(mutant.cpu for mutant in mutants) / len(mutants)
    whole = document | {"mutants": [asdict(mutant) for mutant in mutants]}
    REPORT.with_suffix(".json").write_text(json.dumps(whole, indent=1) + "\n")
    fates = Counter(mutant.fate for mutant in mutants)
    asked = (
        f"*Noticed*: a test of `make test` fails or hangs, of those that mention the module or lie in the folder that mirrors its own. *At scale*: only with counts {scale:g} times "
        "as large, as in `make test-full`. Other tests, which use the module by way of its callers, are not asked, so *missed* and *untested* are upper bounds; some of these "
        "change nothing that can be seen."
    )
    lines = [
        "# Mutants", "",
        f"`make mutants` changed the code of commit `{commit[:12]}` in {len(mutants)} random places (seed {seed}), one at a time. A mutant took {each:.0f} s of a processor.", "",
        "| fate | mutants |", "|---|---|",
        *(f"| {fate} | {fates[fate]} |" for fate in ("noticed", "noticed at scale", "missed", "untested")), "",
        asked, "",
        "| module | line | was | became | fate |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for mutant in mutants:
        if mutant.fate != "noticed":
            was, became = (text.replace("|", "\\|").replace("`", "'") for text in (mutant.was, mutant.became))
            lines.append(f"| `{mutant.module}` | {mutant.line} | `{was}` | `{became}` | {mutant.fate} |")
    REPORT.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=2)
    parser.add_argument(
        "--files", type=int, default=1000, help="of tests that are asked of a mutant, those nearest to it"
    )
    options = parser.parse_args()
    if subprocess.run(
        ["git", "status", "--porcelain", *HOMES], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout:
        sys.exit("There are changes that are not committed: mutants are written into the tree and taken back.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # The file that is changed is taken back.
    document = {"commit": head(), "sources": digest("spark_app", "operator", "tests", "pyproject.toml")}
    document |= {"seed": options.seed, "scale": options.scale, "files": options.files}
    mutants, baselines = earlier(document), Baselines()
    for number, (path, changed, mutant) in enumerate(drawn(random.Random(options.seed))):  # noqa: S311 - draws places
        if number < len(mutants):
            continue
        if number >= options.count:
            break
        mutants.append(tried(path, changed, mutant, tests_of(path, options.files), options.scale, baselines))
        done = mutants[-1]
        print(
            f"{len(mutants)}/{options.count} {done.fate}: {done.module}:{done.line} {done.change} ({done.cpu} s of a processor; "
            f"baselines so far {baselines.cpu:.0f} s) {done.test}",
            flush=True,
        )
        write_report(document, mutants)


if __name__ == "__main__":
    main()
