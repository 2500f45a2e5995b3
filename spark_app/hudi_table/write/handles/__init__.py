"""What one task writes, here or on an executor of Spark: a base file, a log, a compacted slice, a
sorted group.

Here belongs what holds the right to write and puts files. Nothing here chooses what is written
where: that is a plan's (`workload`, `services`).

Begin with `base_file.py`.
"""
