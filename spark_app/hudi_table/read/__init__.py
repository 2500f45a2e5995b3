"""Queries: lazy scans, projection, filters, partition pruning, time travel. Never writes."""
