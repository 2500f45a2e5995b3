"""One attempt at an ingest from Kafka, in this process or in tasks of Spark.

Here belongs when a batch begins and ends, who reads it, and how it is committed. What a topic and
its messages are is `hudi_table.sources.kafka`.

Begin with `attempt.py`.
"""
