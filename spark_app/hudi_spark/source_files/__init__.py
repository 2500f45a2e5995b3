"""Frames that are files and nothing more: tasks read them themselves, and no row passes through the
JVM alone.

Here belongs how such a frame is known, what of it only Spark may read, and how rows go from who
reads them to who writes them. `plan.py` says which frames; `footers.py` which files; `packing.py` is
what tasks do.

Begin with `plan.py`.
"""
