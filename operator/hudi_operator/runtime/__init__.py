"""The reconcile loop and its ports: observe, validate, plan, execute. A cluster and the local
runtime drive the same loop.

Here belongs what observes tables and performs effects. What is to be done is decided in `plan`.

Begin with `reconcile.py`, then `observe.py`; `operator.py` drives it in a cluster.
"""
