"""Hashes over whole Arrow columns: Java's, xxHash32, CRC-32C, and the text of a key's hash fields.

Here belongs a hash that another program must get too. What is made of it (a bucket, a ring, a
filter) is elsewhere.

Begin with `javahash.py`.
"""
