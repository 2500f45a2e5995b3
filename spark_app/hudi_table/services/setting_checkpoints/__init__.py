"""Where an ingest is to go on, as somebody sets it: a commit without rows that holds the
checkpoint, and says who set it in place of what. A text is checked by the rules of its source
before anything is written.

Begin with `places.py`.
"""
