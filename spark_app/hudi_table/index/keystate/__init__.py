"""A global index in memory-mapped files of the writing process: where each key is, so that a writer
that goes on and on does not look its keys up on storage at each commit.

Here belongs the index, its sorted runs of hashes, and the hashes. Nothing of it is stored with the
table, and nothing is left behind when the process ends.

Begin with `index.py`, then `state.py`.
"""
