"""`python -m hudi_table` is `hudictl`."""

import sys

from hudi_table.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
