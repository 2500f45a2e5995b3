"""`format("hudi")` without a jar: reads, writes and streams through Spark's data source interface.

Here belongs what Spark calls by that name, and what its options mean in our terms. The distributed
write is `hudi_spark.writer`'s: a data source cannot ask for a distribution.

Begin with `source.py`.
"""
