"""A job whose messages of Kafka are read in tasks of Spark, however few they are.

python -m tests.support.all_in_tasks SPEC ANSWER
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from unittest import mock

from hudi_spark.jobs import __main__ as jobs


def main(arguments: Sequence[str]) -> int:
    """See `hudi_spark.jobs`."""
    # A test that never asks for Spark does not load it.
    from hudi_spark.jobs.ingests.kafka import tasks

    with mock.patch.object(tasks, "HERE_ROWS", -1):
        return jobs.main(list(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
