"""Taking back what was committed: the newest write by a rollback, everything after a savepoint by a
restore.

Both are decided as plans of the chain that touch the whole table, and carried out at once
(`table.commit.undo`); whoever writes next finishes what a crash left. Refused is what would lose
rows that nobody asked to lose: an instant that a savepoint or a pending plan needs, or one before
which the files have been cleaned.

A helper that publishes decided commits may have looked before the instant was completed and act
later, up to the quarantine time H. An instant that is not that old is taken back only if the caller
confirms that all writers have ended.

Begin with `run.py`.
"""
