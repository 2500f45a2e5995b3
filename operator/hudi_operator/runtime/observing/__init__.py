"""What observing a table is made of: what services left on its timeline, whether anything has
changed since, what is due.

Nothing is observed here; `observe.py` does, with these.

Begin with `unchanged.py`.
"""
