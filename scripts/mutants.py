"""Changes the code in random places, one at a time, and tells which changes the quick tests notice:
docs/results/mutants.md and .json.

cosmic-ray makes the mutants. Modules are drawn from all packages alike, by their names and the
seed; of a module kinds of change and places, by its text. A mutant that differs in nothing but
annotations is drawn anew. Its tests are those that mention the module and those of the folder that
mirrors its own, if they call what is changed (`mutant_tests.py`); then `--further` files that reach
the module by way of those that import it. What passes all of them runs once
more with `--scale`, the counts of `make test-full`: so the report tells what the smaller counts of
`make test` miss. A hanging test notices, too. What changes nothing that can be seen stands with its
reason in `mutants_equivalent.toml`.

Mutants are written into copies of the tree, `.cache/mutants/tree-N`, so many at once as `--jobs`
says. A run goes on where the last one ended, also on other sources: a fate stays while its module
does, and what was missed is asked again if a test has changed since.

    .venv-mutants/bin/python -m scripts.mutants [--count N] [--each N] [--seed N] [--scale N] [--files N] [--further N] [--budget SECONDS] [--jobs N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from scripts.mutant_report import Mutant, Report, asked_now, digest_of, package_of
from scripts.mutant_tests import STATE, Baselines, Tree, body_around, further_of, grows, tests_of

ROOT = Path(__file__).resolve().parent.parent
HOMES = ("spark_app/hudi_table", "operator/hudi_operator")
"""Without the package of Spark: its tests start a JVM for each mutant."""
TRIES = 40
"""Draws of a module in vain, after which it has no more mutants."""


class _NoAnnotations(ast.NodeTransformer):
    """What is left of a module when it runs: annotations are never looked at (`from __future__
    import annotations`)."""

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


def modules(seed: int, only: str) -> list[Path]:
    """In the order in which they are drawn: any first part of it holds of each package a share like
    its own."""
    packages: dict[str, list[Path]] = defaultdict(list)
    for home in HOMES:
        for path in (ROOT / home).rglob("*.py"):
            if path.name != "__init__.py" and only in path.as_posix():
                packages[package_of(path.relative_to(ROOT).as_posix())].append(path)
    places: list[tuple[float, str, Path]] = []
    for name, paths in packages.items():
        ranked = sorted(paths, key=lambda path: hashlib.sha256(f"{seed} {path.relative_to(ROOT)}".encode()).digest())
        places += [((rank + 0.5) / len(ranked), name, path) for rank, path in enumerate(ranked)]
    return [path for _, _, path in sorted(places)]


def drawn(path: Path, seed: int, most: int) -> Iterator[tuple[str, Mutant]]:
    """Mutants of a module, each with the file's changed text."""
    name, code = path.relative_to(ROOT).as_posix(), path.read_text()
    text = digest_of(code)
    chance = random.Random(f"{seed} {name} {text}")  # noqa: S311 - draws places
    kinds: dict[str, list[str]] = {}
    for operator in operator_names():
        if "Variable" not in operator:  # These want to be told names.
            # `core/ReplaceBinaryOperator_Add_Sub`: by what it replaces.
            kinds.setdefault("_".join(operator.split("_")[:2]), []).append(operator)
    nodes, seen = list(ast_nodes(get_ast(code))), {code}
    for _ in range(TRIES):
        if len(seen) > most:
            return
        for kind in chance.sample(sorted(kinds), len(kinds)):
            operator = chance.choice(kinds[kind])
            change = get_operator(operator)()
            places = sum(1 for node in nodes for _ in change.mutation_positions(node))
            try:
                changed = mutate_code(code, change, chance.randrange(places)) if places else None
            except AttributeError:  # cosmic-ray's replacer of exceptions does not know `except a.B`
                continue
            if changed is None or changed in seen or not compiles(changed) or running(changed) == running(code):
                continue
            seen.add(changed)
            pairs = enumerate(zip(code.splitlines(), changed.splitlines(), strict=False), 1)
            line, was, became = next((n, a.strip(), b.strip()) for n, (a, b) in pairs if a != b)
            yield changed, Mutant(name, operator.split("/")[1], line, was, became, text)
            break


def tried(tree: Tree, changed: str, mutant: Mutant, options: argparse.Namespace, baselines: Baselines) -> Mutant:
    """The mutant with its fate. The nearest file of tests that calls what is changed is asked
    alone: mostly it notices, and the others are not even begun. What passes the nearest is tried
    with those that reach the module by way of others. Only of what passes all are those whose
    counts grow asked again."""
    path = ROOT / mutant.module
    asked = False
    found = mutant
    nearest = tests_of(path, options.files)
    farther = [file for file in further_of(path, options.files + options.further) if file not in nearest]
    rounds = [(file, "noticed", 1.0) for file in nearest]
    rounds += [(file, "noticed farther", 1.0) for file in farther[: options.further]]
    rounds += [(file, "noticed at scale", options.scale) for file in nearest if options.scale > 1 and grows(file)]
    for file, fate, scale in rounds:
        usual = baselines.of(file, tree)
        tests = usual.asked(mutant.module, *body_around(path, mutant.line))
        if fate == "noticed farther":
            tests = usual.within(tests, options.budget)
        if not tests:
            continue
        asked = True
        usually = usual.sum_of(tests)
        tree.put(mutant.module, changed)
        try:
            ran = tree.run(tests, scale, usually)
        finally:
            tree.take_back(mutant.module)
        found = replace(found, cpu=round(found.cpu + ran.cpu, 1))
        if ran.failed:
            return replace(found, fate=fate, test=ran.failed)
    return replace(found, fate="missed" if asked else "untested", tests=asked_now(vars(options)))


def ask(path: Path, tree: Tree, options: argparse.Namespace, baselines: Baselines, report: Report) -> None:
    """Add the fates of a module's mutants."""

    def add(mutant: Mutant) -> None:
        report.add(mutant)
        print(
            f"{report.walked}/{options.count} {mutant.fate}: {mutant.module}:{mutant.line} `{mutant.was}` -> `{mutant.became}` "
            f"({mutant.cpu} s of a processor; baselines so far {baselines.cpu:.0f} s) {mutant.test}",
            flush=True,
        )

    settled = report.settled_of(path.relative_to(ROOT).as_posix())
    for mutant in settled:
        add(mutant)
    if not settled:
        for changed, mutant in drawn(path, options.seed, options.each):
            add(report.settled(mutant) or tried(tree, changed, mutant, options, baselines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--each", type=int, default=5, help="mutants of a module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=2)
    parser.add_argument("--files", type=int, default=6, help="of tests that are asked of a mutant, those nearest to it")
    parser.add_argument("--further", type=int, default=6, help="files that are asked of what those nearest miss")
    parser.add_argument("--budget", type=float, default=60, help="seconds of a processor for one of the further files")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree, each with a mutant of its own")
    parser.add_argument("--only", default="", help="modules whose path holds this")
    options = parser.parse_args()
    baselines = Baselines()
    report = Report({name: getattr(options, name) for name in ("seed", "each", "files", "further", "scale")})
    left = iter(modules(options.seed, options.only))
    taking = threading.Lock()

    def work(number: int) -> None:
        tree = Tree(STATE / f"tree-{number + 1}")
        while report.walked < options.count:
            with taking:
                path = next(left, None)
            if path is None:
                break
            ask(path, tree, options, baselines, report)
        tree.close()

    with ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(work, number) for number in range(options.jobs)]:
            done.result()


if __name__ == "__main__":
    main()
