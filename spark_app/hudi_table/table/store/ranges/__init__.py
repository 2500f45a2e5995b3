"""Files on an object store, read by ranges: few requests, and those at once.

Here belongs which bytes of one file are asked for, and when. Requests themselves, and their
retries, are sent by the stores beside this folder.

Begin with `ranged_reads.py`; `column_chunks.py` knows what of a Parquet file is asked for ahead.
"""
