"""The kinds of query that a scan answers."""

from __future__ import annotations

QUERIES = ("snapshot", "read_optimized", "incremental")
