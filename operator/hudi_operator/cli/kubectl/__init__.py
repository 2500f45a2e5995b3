"""`kubectl hudi`: questions and tasks about the resources of a cluster. Each verb is a module that
is imported when it runs.

Here belongs what asks an API server for people. Nothing here decides: `plan.status` computes what
is shown.

Begin with `program.py`.
"""
