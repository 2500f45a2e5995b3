"""What is not taken of rows that are no messages: expectations are asked, transforms tell the rows
that they cannot make, and the error table takes what is refused.

Here belongs how one ingest judges rows on their way, in one process and in tasks of Spark. What an
expectation or a transform is stands in `hudi_table.services.transforming`; messages are judged as
they are decoded, by `shaping.py`. The tables that keep what is refused, of messages too, are of
`error_tables.py`.

Begin with `rows.py`.
"""
