"""The resources `HudiTable` and `TableService` as typed values, their rules, and the CRDs derived
from them.

No I/O and no clock here. One declaration of a field gives its type, default, limits, OpenAPI schema
and parser.

Begin with `table.py` and `service.py`, which are made of the parts in `fields` and `ingests`, in
the words of `schema.py`.
"""
