"""Rows of a database, over ADBC: all of them, or those whose column has grown since the newest
commit, read in parts from one state of the database.

Begin with `source.py`.
"""
