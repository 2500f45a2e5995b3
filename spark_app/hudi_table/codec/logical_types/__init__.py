"""Column types that Apache Hudi 1.2 has of its own, as Arrow, Avro and Parquet hold them.

Here belongs what such a type is and how its values turn into stored ones. Blobs are structs to all
of them and need nothing here; what is asked of such columns stands in `read/unstructured`.

Begin with `vectors.py`.
"""
