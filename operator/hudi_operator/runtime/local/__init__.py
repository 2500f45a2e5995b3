"""The local runtime: a cluster in a folder.

Here belongs what stands for the API server on one machine: manifests, state, printing. The
reconcile is the cluster's.

Begin with `loop.py`.
"""
