"""Verbs that the control plane adds to `hudictl`, through the entry-point group `hudictl.verbs`.

Here belongs what parses arguments and prints. What a verb does is elsewhere.

Begin with `local.py`, the verb of the local runtime, and `run.py`, the process of a cluster.
"""
