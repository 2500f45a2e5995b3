"""What pods run: `python -m hudi_spark.jobs SPEC.json RESULT.json` does what a JobSpec asks and
writes a JobResult.

Here belongs a job from its spec to its result. What a service or a write does belongs to the
library.

Begin with `__main__.py`, then `ingest.py` and `service.py`.
"""
