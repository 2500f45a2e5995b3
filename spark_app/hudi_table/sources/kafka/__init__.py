"""Topics of Kafka as a source: what the brokers have, where an ingest begins, and messages as
Arrow. Needs confluent-kafka (the extra `kafka`).

Here belongs what talks to brokers. Positions, their checkpoint and what they miss are plain values
in `hudi_table.model.job`; formats are beside this folder.

Begin with `source.py`.
"""
