"""Keeping the metadata table itself in order: compaction, cleaning and archiving after a write;
building it on request.

What changes its file groups lies in `hudi_table.metadata`; here belongs when it is done.

Begin with `upkeep.py`.
"""
