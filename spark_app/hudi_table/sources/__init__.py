"""Where rows come from that are in no table yet: files, topics of Kafka. No engine, no Spark.

A source is `discover → plan a batch from a checkpoint → read it as Arrow batches → next checkpoint`
(`base.py`). Here belongs what knows a source and its formats, and where a table's commits keep how
far an ingest is (`checkpoints.py`). It stands beside `write`, above `read`, so that a source may
read another table, and below the services and jobs that bring the two together: no source knows
where its rows go.

Begin with `base.py`.
"""
