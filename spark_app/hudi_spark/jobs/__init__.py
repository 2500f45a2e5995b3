"""What pods run: `python -m hudi_spark.jobs SPEC.json RESULT.json` does what a JobSpec asks and writes a JobResult."""
