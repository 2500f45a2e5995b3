"""A stream of Kinesis as a source: its shards, where an ingest begins in them, and records as
Arrow. Needs boto3 (the extra `aws`).

Here belongs what only Kinesis has. What becomes of a record's data is `formats`', and how far an
ingest is `model/job/shards.py` says. No job and no table is known here.

Begin with `source.py`.
"""
