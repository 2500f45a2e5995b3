"""What a table is and what was done to it: properties, active and archived timeline, the decision
chain, schemas.

Here belongs what reads or writes files below `.hoodie` and needs no data file for it. No file group
is known here (`view`), and nothing is decided (`commit`).

Begin with `context.py`, the table as every module gets it, then `active.py`, the timeline from one
listing.
"""
