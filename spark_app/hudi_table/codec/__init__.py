"""Bytes to Arrow and back: hashes, bloom filters, Avro, Parquet base files.

Pure functions of their arguments. Nothing here knows a table, a timeline or a store.
"""
