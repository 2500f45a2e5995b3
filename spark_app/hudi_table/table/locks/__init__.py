"""Locks that Apache Hudi shares: one holder among its writers and ours.

Here belongs how a lock is taken, renewed, judged and given back, as Hudi's own client does it. What
is done under it is for `commit` to say; nothing here knows an instant. Our own writers need none
beside each other.

Begin with `lease.py`, what every lock promises, then `opening.py`, which takes the options' word
for which one it is.
"""
