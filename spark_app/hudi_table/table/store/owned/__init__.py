"""Objects and files of which a process knows whether they are still what it has written.

Here belong writes under a condition, of which a lock is made. What only must not be there twice is
created exclusively: `Storage.put_if_absent`.

Begin with `versioned.py`.
"""
