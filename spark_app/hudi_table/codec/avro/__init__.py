"""Avro: schemas, records column by column, object containers.

Here belongs what knows Avro and no Hudi. Hudi's own schemas are data, in `avsc/`.

Begin with `schema.py`; `guard.py` stands before every schema that comes with the data.
"""
