"""Decisions: what is desired and what was observed in, effects out. No I/O, no clock."""
