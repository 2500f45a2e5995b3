"""Values as text, and texts as bytes.

Here belongs how rows are written as JSON lines, how times of nanoseconds are shown, and the bytes
under Arrow's strings, which hashes and filters work on. Keys of records stand in `hashes` and
`bloom`.

Begin with `utf8.py`.
"""
