"""A global index in memory-mapped files of the writing process: where each key is, so that a writer
that goes on and on does not look its keys up on storage at each commit.

Here belongs the index, its sorted runs of hashes, the hashes, and the folder in which all of it
outlives the process, if the writer names one. Nothing of it is stored with the table, and without
such a folder nothing is left behind when the process ends.

Begin with `index.py`, then `state.py`, then `saved.py`.
"""
