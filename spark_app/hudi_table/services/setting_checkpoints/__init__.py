"""Where an ingest is to go on, as somebody sets it: a commit without rows that holds the checkpoint,
and says who set it in place of what. A text of `set_checkpoint` is checked by its source's rules
before anything is written.
"""
