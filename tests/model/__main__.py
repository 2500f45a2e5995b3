"""Search instances by hand: `python -m tests.model K3 K9 [--without GUARD] [--strict] [--lost N]
[--trace]`."""

from __future__ import annotations

import argparse

from tests.model.engine import Search
from tests.model.instances import INSTANCES, instance


def main() -> None:
    """Print one line for each instance."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="INSTANCE")
    parser.add_argument("--without", action="append", default=[], metavar="GUARD")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--lost", type=int, metavar="N")
    parser.add_argument("--states", type=int, default=3_000_000)
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    for name in options.names or INSTANCES:
        case = instance(name, options.without, strict=options.strict, lost_replies=options.lost)
        case.states_max = options.states
        result = Search(case).run()
        found = "; ".join(text for text, _ in result.violations.values()) or ("L stuck" if result.stuck else "none")
        end = "complete" if result.complete else "stopped"
        print(f"{name:5}{case.name:75} {result.states:>9,} {result.seconds:6.1f}s {end}: {found}", flush=True)
        if options.trace:
            print(*(f"    {line}" for line in result.trace()), sep="\n")


if __name__ == "__main__":
    main()
