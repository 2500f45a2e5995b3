"""Verbs of `hudictl` that bring a table to another version. Each module is named as its verb.

Here belongs a verb's `run`. Its arguments stand in `service_verbs.py`, the work in
`hudi_table.services.upgrading`.

Begin with `bring.py`, which both share.
"""
