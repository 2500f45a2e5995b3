"""All mutants of the museum."""

from __future__ import annotations

from tests.museum import commits, indexes, logs, recovery, rewriting

TABLES = (commits, recovery, logs, rewriting, indexes)
MUTANTS = tuple(mutant for table in TABLES for mutant in table.MUTANTS)
