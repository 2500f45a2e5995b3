"""How work is run and followed: tasks on threads, progress, the lines of the log.

Here belongs what runs or follows work of any kind. What a task does belongs to who calls. Spark's
engine is in `hudi_spark`.

Begin with `local_engine.py`, the engine of one process; `Engine` itself is in `store/ports.py`.
"""
