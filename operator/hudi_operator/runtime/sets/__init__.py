"""Reconciling HudiTableSets: what brokers and registries tell, and the HudiTables that follow from
it.

Begin with `reconciler.py`.
"""
