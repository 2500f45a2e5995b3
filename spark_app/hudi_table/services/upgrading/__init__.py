"""Bringing a table from one version to another: its timeline, archive and properties in the form of
the other one, with one put between old and new.

Here belongs what rewrites files of `.hoodie/`. How the properties of a version are called is known
by `model.table.version_properties`, what keeps writers away while it goes on by
`table.version_change`.

Begin with `run.py`.
"""
