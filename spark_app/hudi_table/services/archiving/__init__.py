"""Archiving: which instants leave the active timeline, the archive that they go to, and trimming the decision chain."""
