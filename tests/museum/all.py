"""All mutants of the museum."""

from __future__ import annotations

from tests.museum import commits, indexes, keeping, logs, metadata, reading, recovery, rewriting

TABLES = (commits, recovery, logs, rewriting, indexes)
MUTANTS = tuple(mutant for table in TABLES for mutant in table.MUTANTS)

WAITING = tuple(mutant for table in (keeping, metadata, reading) for mutant in table.MUTANTS)
"""What is written and did not run yet: nobody knows whether the test that is named catches it. A command runs those that it names; what is caught may move."""
