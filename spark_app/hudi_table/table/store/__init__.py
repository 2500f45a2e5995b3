"""Storage: objects below one base path, on local disk, S3, GCS, Azure or in memory; the system's
clock.

Here belongs what touches the world, and what its failures mean. Nothing here knows what a table is:
no instant, no file group, no row.

Begin with `ports.py`, which says what the rest of the library asks for; `opening.py` gives a store
for a URI.
"""
