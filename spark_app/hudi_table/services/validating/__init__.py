"""Pre-commit validators: queries over the partitions that a write changes, as they were and as they
will be, which decide whether it commits.

Facts (Hudi 0.15.0 and 1.1.1, public source): a validator is named by its class, runs the queries of
its own option in turn, and sees the rows of the changed partitions alone; queries are divided by
`;`, a result stands behind `#`, and `<TABLE_NAME>` is the state. Hudi reads base files and so takes
copy-on-write tables alone; here logs are merged.

Begin with `asked.py`.
"""
