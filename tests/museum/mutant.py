"""What the museum holds: faults of table formats that were published, each as a change of our code
that makes it have that fault."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CODE = "spark_app/hudi_table"
_TESTS = "tests"
_SOURCES = {
    # A number behind the name of another project is one of its issues.
    r"(?<![a-z] )#(\d+)": r"[#\1](https://github.com/apache/hudi/issues/\1)",
    r"HUDI-(\d+)": r"[HUDI-\1](https://issues.apache.org/jira/browse/HUDI-\1)",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `name` says what goes wrong, `bug` where that was published: issues of
    apache/hudi, its RFCs, or who found it in other formats.

    `old` stands in `file` (below spark_app/hudi_table) exactly once, and `new` takes its place.
    `test` (below tests) is the narrowest test that notices.
    """

    name: str
    bug: str
    file: str
    old: str
    new: str
    test: str

    @property
    def path(self) -> str:
        """The changed file, relative to the repository."""
        return f"{_CODE}/{self.file}"

    @property
    def test_id(self) -> str:
        """The test as pytest takes it, in the repository."""
        return f"{_TESTS}/{self.test}"

    @property
    def test_file(self) -> str:
        """The file of the test, relative to the repository."""
        return self.test_id.partition("::")[0]

    @property
    def sources(self) -> str:
        """`bug` with links."""
        text = self.bug
        for pattern, link in _SOURCES.items():
            text = re.sub(pattern, link, text)
        return text

    def changed(self, code: str) -> str:
        """The code with the fault. Raises ValueError if what it takes the place of is not there
        exactly once, or nothing that runs is left."""
        count = code.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: its text stands {count} times in {self.path}")
        found = code.replace(self.old, self.new)
        compile(found, self.path, "exec")
        return found
