"""All mutants of the museum."""

from __future__ import annotations

from tests.museum import commits, indexes, keeping, logs, metadata, reading, recovery, rewriting

TABLES = (commits, recovery, logs, rewriting, indexes, keeping, metadata, reading)
MUTANTS = tuple(mutant for table in TABLES for mutant in table.MUTANTS)
