"""Ingests from what is no folder of files: topics of Kafka, streams of Kinesis,
databases, other Hudi tables, sources of other packages; and the bootstrap that makes a
table of files.

Here belongs one attempt at an ingest from one type of source, or at a bootstrap. What knows the
source itself is `hudi_table.sources`; files are `ingest.py`'s, beside this folder.

Begin with `jdbc.py`: one batch, one commit.
"""
