"""What a result is handed over as: Arrow, pandas, Polars, DuckDB, DataFusion, HTML.

Here belongs what consumers need. Nothing here chooses files.

Begin with `exports.py`.
"""
