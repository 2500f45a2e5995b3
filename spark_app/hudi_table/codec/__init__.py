"""Bytes to Arrow and back: hashes, bloom filters, Avro, HFiles, logs, Parquet base files.

Pure functions of their arguments. Nothing here knows a table, a timeline or a store.

Begin with `parquet.py` and `parquet_writer.py` for base files, and `log/blocks.py` for logs.
"""
