"""Where the rows of a DataFrame go: keys as columns, the stored keys that they meet, the task that
writes each row.

Here belongs what Spark computes before files are written. Which file group a key belongs to is
decided by `hudi_table.index` and `hudi_table.write.workload`, here as there.

Begin with `routes.py`.
"""
