"""Shows that the tests catch every fault of the museum, and writes docs/results/museum.md.

Two mutants at most run at once, each in a copy of the tree. What ran on these sources before is not run again; what was wrong is.

    .venv/bin/python -m tests.museum [PART OF A NAME ...]
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from tests.museum.all import MUTANTS, WAITING
from tests.museum.mutant import ROOT, Mutant
from tests.museum.run import Fate, copied_tree, fate_of, first_to_fail, keep_fate, known_fate

REPORT = ROOT / "docs" / "results" / "museum.md"
AT_ONCE = 2


def asked_for(words: list[str]) -> list[Mutant]:
    """The mutants that a command line names, those that wait too; all of the museum without one. Ends the program where it names none."""
    found = (
        [mutant for mutant in (*MUTANTS, *WAITING) if any(word in mutant.name for word in words)]
        if words
        else [*MUTANTS]
    )
    return found or sys.exit("no mutant has such a name")


def run_all(mutants: list[Mutant]) -> None:
    """Say what becomes of each, once all their tests pass without one. Ends the program if they do not."""
    with ExitStack() as stack:
        copies = [stack.enter_context(copied_tree()) for _ in range(AT_ONCE)]
        if failed := first_to_fail(mutants, copies[0]):
            sys.exit(f"{failed} fails without a mutant")
        trees: SimpleQueue[Path] = SimpleQueue()
        for tree in copies:
            trees.put(tree)

        def told(mutant: Mutant) -> None:
            tree = trees.get()
            try:
                fate = fate_of(mutant, tree)
            finally:
                trees.put(tree)
            keep_fate(mutant, fate)
            what = "caught" if fate.caught else "NOT CAUGHT"
            print(f"{what} in {fate.seconds:.0f} s: {mutant.name} ({fate.failed or mutant.test})", flush=True)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(told, mutants))


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
