"""Shows that the tests catch every fault of the museum, and writes docs/results/museum.md.

Two mutants at most run at once, each in a copy of the tree. What ran on these sources before is not
run again; what was wrong is.

    .venv/bin/python -m tests.museum [PART OF A NAME ...]
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from tests.museum.all import MUTANTS
from tests.museum.mutant import ROOT, Mutant
from tests.museum.run import Fate, copied_tree, fate_of, first_to_fail, keep_fate, known_fate

REPORT = ROOT / "docs" / "results" / "museum.md"
AT_ONCE = 2


def asked_for(words: list[str]) -> list[Mutant]:
    """The mutants that a command line names; all without one. Ends the program where it names
    none."""
    found = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    return found or sys.exit("no mutant has such a name")


def by_test(mutants: list[Mutant]) -> list[list[Mutant]]:
    """Those of one test together: what ran counts at once, so a run that is cut short goes on
    behind it."""
    found: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        found.setdefault(mutant.test_id, []).append(mutant)
    return [*found.values()]


def run_all(mutants: list[Mutant]) -> None:
    """Say what becomes of each, once its test passes without one. Ends the program if a test does
    not."""
    wrong: list[str] = []
    with ExitStack() as stack:
        trees: SimpleQueue[Path] = SimpleQueue()
        for _ in range(AT_ONCE):
            trees.put(stack.enter_context(copied_tree()))

        def told(same_test: list[Mutant]) -> None:
            tree = trees.get()
            try:
                if failed := first_to_fail(same_test, tree):
                    print(f"FAILS WITHOUT A MUTANT: {failed}", flush=True)
                    wrong.append(failed)
                    return
                for mutant in same_test:
                    fate = fate_of(mutant, tree)
                    keep_fate(mutant, fate)
                    what = "caught" if fate.caught else "NOT CAUGHT"
                    print(f"{what} in {fate.seconds:.0f} s: {mutant.name} ({fate.failed or mutant.test})", flush=True)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(told, by_test(mutants)))
    if wrong:
        sys.exit(f"without a mutant fails: {', '.join(wrong)}")


def page(fates: list[tuple[Mutant, Fate]], commit: str) -> str:
    """The report."""
    lines = [
        "# Museum", "",
        f"Faults that were published, of Apache Hudi and of formats like it, each made anew as a change of our code: {len(fates)} of them, on the sources of commit",
        f"`{commit}`. Beside each stands the narrowest test that catches it: that passes without the change and fails with it. `python -m tests.museum` writes this page.", "",
        "| fault | published as | what has it here | test that catches it | seconds |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for mutant, fate in fates:
        test = mutant.test_id.replace("|", "\\|")
        lines.append(f"| {mutant.name} | {mutant.sources} | `{mutant.file}` | `{test}` | {fate.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    mutants = asked_for(sys.argv[1:])
    left = [mutant for mutant in mutants if (fate := known_fate(mutant)) is None or not fate.caught]
    if left:
        run_all(left)
    fates = [(mutant, fate) for mutant in MUTANTS if (fate := known_fate(mutant)) is not None and fate.caught]
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    REPORT.write_text(page(fates, commit.stdout.strip()))
    print(f"{len(fates)} of {len(MUTANTS)} mutants are caught")
    return 0 if {mutant for mutant, _ in fates}.issuperset(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
