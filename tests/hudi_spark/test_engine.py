"""`SparkEngine`: independent tasks keep their order, fail loudly and see nothing of each other."""

from __future__ import annotations

import pytest

from hudi_spark.engine import SparkEngine

pytestmark = pytest.mark.spark


def test_results_come_in_the_order_of_the_items(spark):
    engine = SparkEngine(spark)
    assert engine.map(lambda n: n * n, list(range(7))) == [n * n for n in range(7)]
    assert list(engine.imap(str, range(3))) == ["0", "1", "2"]


def test_no_items_start_no_task(spark):
    assert SparkEngine(spark).map(str, []) == []


def test_a_failing_task_fails_the_call(spark):
    with pytest.raises(Exception, match="ZeroDivisionError"):
        SparkEngine(spark).map(lambda n: 1 // n, [1, 0])


def test_a_read_uses_as_many_tasks_as_the_engine_says(spark):
    assert SparkEngine(spark).parallelism == 2
    assert SparkEngine(spark, 5).parallelism == 5


def test_workers_begin_with_our_imports_made(spark):
    def found(batches):
        import sys

        known = "hudi_spark.writer" in sys.modules
        for batch in batches:
            yield batch.slice(0, int(known))

    assert spark.range(3, numPartitions=1).mapInArrow(found, "id long").count() == 1
