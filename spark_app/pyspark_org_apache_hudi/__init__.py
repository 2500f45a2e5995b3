"""Found by Spark because of its name: the name by which older jobs ask for Hudi,
`format("org.apache.hudi")`."""

from hudi_spark.datasource.source import LongNamedSource as DefaultSource

__all__ = ["DefaultSource"]
