"""`hudictl`, the command line: questions about a table, and its rows. `--help` imports neither
pyarrow nor numpy.

Data goes to stdout, all else to stderr. Only this package prints.

Begin with `program.py`; the verbs are in `queries` and `services`.
"""

from hudi_table.cli.program import guarded, main

__all__ = ["guarded", "main"]
