"""What stands on a timeline and in the decision chain: instants, commit metadata, entries, conflict
keys.

Here belongs names and documents as values. Reading and writing them belongs to `table.timeline`.

Begin with `instants.py`.
"""
