"""Hudi's bloom filters over record keys.

Here belongs their bytes and how keys are set and asked. Where a filter is stored is known by
Parquet footers and the metadata table.

Begin with `filters.py`.
"""
