"""Frames that are files and nothing more: tasks read the files themselves, and rows reach those
that write as Arrow streams.

Here belongs how such a frame is known, what of it only Spark may read, and how rows go from who
reads them to who writes them. `plan.py` says which frames, `footers.py` which files; `packing.py`
is what tasks do.

Begin with `plan.py`.
"""
