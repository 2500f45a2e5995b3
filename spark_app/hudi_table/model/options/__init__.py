"""Options of writes and services: every known key, its parser, and what becomes of it.

Here belongs what a key means, once. The table of all keys is data, in `model/data/options.tsv`.

Begin with `known.py`, the one gate before all of them.
"""
