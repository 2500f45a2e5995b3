"""Verbs of `hudictl` that run table services. Each module is named as its verb.

Here belongs a verb's `run`: what it prints of a plan or a result. Its arguments stand in
`service_verbs.py`, the services in `hudi_table.services`.

Begin with `clean.py`.
"""
