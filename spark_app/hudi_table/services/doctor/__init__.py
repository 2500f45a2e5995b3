"""The doctor: what is wrong with a table's files and timeline, and putting aside what no reader
uses.

It reports and changes nothing; `quarantine` moves, on request, and never deletes.

Begin with `run.py`.
"""
