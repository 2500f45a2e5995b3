"""The one version of hudi-table, hudi-spark and hudi-operator, which are released together; their
builds read it here."""

__version__ = "0.1.0.dev0"
