"""What a commit does for other engines that write the same table at the same time.

Here belongs what they look at or wait for: the lock that is held where something is decided, and
the heartbeat of an attempt. What they did is looked for in `foreign_writers`, beside this folder.

Begin with `locking.py`.
"""
