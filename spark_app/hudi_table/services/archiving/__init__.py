"""Archiving: which instants leave the active timeline, the archive that they go to, and trimming
the decision chain.

Here belongs the archive of the timeline. No file of data is touched.

Begin with `policy.py`, then `execute.py`.
"""
