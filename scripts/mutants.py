"""Changes the code in random places, one at a time, and tells which changes the quick tests notice: docs/results/mutants.md and .json.

cosmic-ray makes the mutants. A module is drawn by its length, then a kind of change, then a place. A mutant that differs in nothing
but annotations is drawn anew. Its tests are those that mention the module and those of the folder that mirrors its own. What passes all of
them runs once more with `--scale`, the counts of `make test-full`: so the report tells what the smaller counts of `make test` miss.
A hanging test notices, too. The tree must be clean: mutants are written into it and taken back.

    .venv-mutants/bin/python scripts/mutants.py [--count N] [--seed N] [--scale N] [--files N]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "docs" / "results" / "mutants"
HOMES = ("spark_app/hudi_table", "spark_app/hudi_spark", "operator/hudi_operator")
SECONDS_BEYOND = 30
Lasts = dict[tuple[str, ...], float]


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
            changed = mutate_code(code, operator, chance.randrange(places)) if places else None
            if changed is None or not compiles(changed) or running(changed) == running(code):
                continue
            pairs = enumerate(zip(code.splitlines(), changed.splitlines(), strict=False), 1)
            line, was, became = next((n, a.strip(), b.strip()) for n, (a, b) in pairs if a != b)
            yield path, changed, Mutant(path.relative_to(ROOT).as_posix(), name.split("/")[1], line, was, became)
            break


def tests_of(path: Path, most: int) -> list[str]:
    """Of its distribution's tests those that mention the module and those of the folder that mirrors its own, or of the nearest above; those
    that have its name first; at most so many files."""
    inside = path.relative_to(ROOT).parts[1:]
    dotted = ".".join(inside).removesuffix(".py")
    own = sorted((ROOT / "tests" / inside[0]).rglob("test_*.py"))
    mentions = [test for test in own if dotted in test.read_text()]
    folder = ROOT.joinpath("tests", *inside[:-1])
    while not list(folder.glob("test_*.py")):
        folder = folder.parent
    # The folder of a whole distribution is no mirror of a module below it.
    beside = [] if len(folder.relative_to(ROOT).parts) < min(3, len(inside)) else sorted(folder.rglob("test_*.py"))
    first = sorted(
        {*mentions, *beside},
        key=lambda test: (not test.stem.startswith(f"test_{path.stem}"), test not in mentions, test),
    )
    return [test.relative_to(ROOT).as_posix() for test in first[:most]]


def noticed(tests: list[str], scale: float, seconds: float) -> tuple[str, float]:
    """The first test that fails ('' where none does), and how long that took."""
    started = time.monotonic()
    env = {**os.environ, "HUDI_TEST_SCALE": str(scale), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        f"{ROOT}/.venv/bin/pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "-rfE",
        "--tb=no",
        *tests,
    ]
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as run:
        try:
            said, _ = run.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            return "(hangs)", time.monotonic() - started
        except BaseException:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    took = time.monotonic() - started
    if run.returncode == 0:
        return "", took
    failed = [line.split()[1] for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return (failed[0] if failed else f"(pytest ends with {run.returncode})"), took


def tried(path: Path, changed: str, mutant: Mutant, tests: list[str], scale: float, lasts: Lasts) -> Mutant:
    """The mutant with its fate."""
    told = asdict(mutant)
    if not tests:
        return Mutant(**{**told, "fate": "untested"})
    if tuple(tests) not in lasts:
        failed, lasts[tuple(tests)] = noticed(tests, 1, 3600)
        if failed:
            sys.exit(f"{failed} fails without a change")
    code = path.read_text()
    usual = lasts[tuple(tests)]
    try:
        path.write_text(changed)
        test, seconds = noticed(tests, 1, 3 * usual + SECONDS_BEYOND)
        fate = "noticed" if test else "missed"
        if not test and scale > 1:
            test, more = noticed(tests, scale, 3 * scale * usual + SECONDS_BEYOND)
            fate, seconds = ("noticed at scale" if test else "missed"), seconds + more
    finally:
        path.write_text(code)
    return Mutant(**{**told, "fate": fate, "test": test, "seconds": round(seconds, 1)})


def head() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def earlier(seed: int, scale: float) -> list[Mutant]:
    """Those that an interrupted run of this commit tried."""
    there = REPORT.with_suffix(".json")
    document = json.loads(there.read_text()) if there.exists() else {}
    if [document.get(name) for name in ("commit", "seed", "scale")] != [head(), seed, scale]:
        return []
    return [Mutant(**mutant) for mutant in document["mutants"]]


def write_report(mutants: list[Mutant], seed: int, scale: float) -> None:
    """The JSON and its page."""
    commit = head()
    document = {"commit": commit, "seed": seed, "scale": scale, "mutants": [asdict(mutant) for mutant in mutants]}
    REPORT.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    fates = Counter(mutant.fate for mutant in mutants)
    asked = (
        f"*Noticed*: a test of `make test` fails or hangs, of those that mention the module or lie in the folder that mirrors its own. *At scale*: only with counts {scale:g} times "
        "as large, as in `make test-full`. Other tests, which use the module by way of its callers, are not asked, so *missed* and *untested* are upper bounds; some of these "
        "change nothing that can be seen."
    )
    lines = [
        "# Mutants", "",
        f"`make mutants` changed the code of commit `{commit[:12]}` in {len(mutants)} random places (seed {seed}), one at a time.", "",
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
    mutants = earlier(options.seed, options.scale)
    lasts: Lasts = {}
    for number, (path, changed, mutant) in enumerate(drawn(random.Random(options.seed))):  # noqa: S311 - draws places
        if number < len(mutants):
            continue
        mutants.append(tried(path, changed, mutant, tests_of(path, options.files), options.scale, lasts))
        done = mutants[-1]
        print(
            f"{len(mutants)}/{options.count} {done.fate}: {done.module}:{done.line} {done.change} ({done.seconds} s) {done.test}",
            flush=True,
        )
        write_report(mutants, options.seed, options.scale)
        if len(mutants) == options.count:
            break


if __name__ == "__main__":
    main()
