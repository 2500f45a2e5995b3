"""The loaded table: from the objects under a base path to a consistent table, and from an attempt
to a commit.

The rooms, each above those before it: `store` (objects), `timeline` (instants, properties, the
decision chain), `engine` (tasks), `view` (file groups and plans of services), `keys` (record keys
as text), `rows` (what lies in a slice), `commit` (one attempt at one instant). What to write and
how to query it belongs to `write` and `read`, Hudi's metadata table to `metadata`.

Begin with `timeline/context.py`, then `timeline/active.py`, then `commit/transaction.py` with
`docs/explanation/commit-protocol.md` beside it.
"""
