"""Found by Spark because of its name: exports `format("hudi")` to every session that has it on its
Python path."""

from hudi_spark.datasource.source import HudiDataSource as DefaultSource

__all__ = ["DefaultSource"]
