"""The documents between operator and job: JobSpec, JobResult, checkpoints of an ingest.

Here belongs what both sides must read alike. Nothing here starts anything.

Begin with `jobspec.py`.
"""
