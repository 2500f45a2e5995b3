"""Writes `docs/reference/sources.md` from the matrix of the suite: `python -m
tests.streams.conformance` (`make reference`). A test compares."""

from __future__ import annotations

from pathlib import Path

from tests.streams.conformance.matrix import ALSO, CASES, LACKS, PARTS, SUITE, cells

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "sources.md"
HEAD = f"""# What sources stand

Made by `make reference` from `tests/streams/conformance`; change that folder.

One suite does the same to every source of an ingest, each beside its real part: `{SUITE}`. Its runs are those of the
engine Local; sources on Spark are read by tasks, whatever comes. Below the table stands what each case asks for, and which test shows it.

"""


def page() -> str:
    """The text of the page."""
    lines = [f"| source | {' | '.join(case.heading for case in CASES.values())} |", f"|---|{'---|' * len(CASES)}"]
    for part in PARTS:
        marks = " | ".join("n/a" if (part.label, case) in LACKS else "yes" for case in CASES)
        lines.append(f"| {part.label} | {marks} |")
    lines += ["", "Beside each source stands, in these tests:", ""]
    lines += [f"- {part.label}: {part.part}" for part in PARTS]
    for name, case in CASES.items():
        suite = f"{SUITE}::{case.test}"
        own = [(part, test, reason) for part, of, test, reason in cells() if of == name]
        count = sum(test == suite for _, test, _ in own)
        lines += ["", f"## {case.heading}", "", case.says, "", f"In the suite, of {count} sources: {_said(suite)}.", ""]
        lines += ["| source | test |", "|---|---|"]
        for part, test, reason in own:
            also = ALSO.get((part.label, name))
            shown = (
                f"does not apply: {reason}" if reason else "the suite's" if test == suite else f"instead {_named(test)}"
            )
            lines.append(f"| {part.label} | {shown}{f'; and {_named(also)}' if also else ''} |")
    return HEAD + "\n".join(lines) + "\n"


def _named(test: str) -> str:
    """A test by its file and the sentence that it is."""
    return f"`{test.partition('::')[0]}`: {_said(test)}"


def _said(test: str) -> str:
    return test.rpartition("::")[2].removeprefix("test_").replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
