"""What one instant of the data table tells the metadata table: a log in each file group that it
touches.

Here belongs what derives a delta, places it, writes it and takes it back. What reads it is beside
this folder.

Begin with `commit.py`.
"""
