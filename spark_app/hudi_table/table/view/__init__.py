"""Which files count: file groups and slices under a timeline, and what plans and savepoints on it
say of them.

Here belongs what turns listed files and plans into values. No file of data is opened (`rows`), and
no plan is made (`services`).

Begin with `file_groups.py`, then `file_system_view.py`.
"""
