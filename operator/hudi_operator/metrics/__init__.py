"""What the operator's process tells of itself and of its resources, over HTTP: metrics and probes.
It decides nothing.

Begin with `catalog.py`, where every metric is declared.
"""
