"""On CI a skipped test is a failure, unless tests/skips.txt lists it with a reason.

A skip is how a missing tool hides a missing test. Each line of the list is a pattern of node ids
and, after ` # `, the reason; a pattern without a reason is an error. The hooks here are imported by
tests/conftest.py.
"""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
SKIPS = Path(__file__).resolve().parent.parent / "skips.txt"


def allowed_skips(path: Path) -> dict[str, str]:
    """Pattern → reason. Raises `ValueError` for a line without a reason."""
    allowed: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.partition(" # ")
        if not reason.strip():
            raise ValueError(f"{path.name}, line {number}: {line!r} has no reason; write `PATTERN # why`")
        allowed[pattern.strip()] = reason.strip()
    return allowed


def refuse_skip(report: Report) -> Report:
    """`report`, turned into a failure if it is a skip that CI does not allow."""
    if report.outcome != "skipped" or hasattr(report, "wasxfail") or os.environ.get("CI") != "true":
        return report
    skips = Path(os.environ.get("HUDI_TEST_SKIPS", SKIPS))
    if any(fnmatch.fnmatchcase(report.nodeid, pattern) for pattern in allowed_skips(skips)):
        return report
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{why}\nA skipped test is a failure on CI: mend what is missing, or list it in tests/skips.txt."
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return refuse_skip((yield))
