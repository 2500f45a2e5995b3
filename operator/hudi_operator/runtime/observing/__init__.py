"""Parts of a look at a table: what services left on its timeline, whether anything has changed since the last look, what is due.

No look is taken here; `observe.py` does, with these.

Begin with `unchanged.py`.
"""
