"""What is handed to a launcher: names of attempts and JobSpecs. No I/O, no clock.

Here belongs the content of objects. Creating them belongs to `launchers`.

Begin with `jobs.py`, then `pods.py`.
"""
