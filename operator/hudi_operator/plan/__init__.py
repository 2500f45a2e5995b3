"""Decisions: what is desired and what was observed in, effects out. No I/O, no clock.

Here belongs what can be computed from values alone. What is observed is `runtime`'s, what a job is
asked is `manifests`'.

Begin with `table.py` and `service.py`; `observed.py` is what goes in, `effects.py` what comes out.
"""
