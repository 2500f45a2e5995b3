"""From an attempt to a commit: claim, snapshot, right to write, decision, publication; and back:
recovery, rollback, restore.

Here belongs every step of `docs/explanation/commit-protocol.md`, under its number. What is written
is not known here (`write`, `services`): a caller hands over write stats.

Begin with `transaction.py`; what becomes of an attempt that died is in `recovery.py`.
"""
