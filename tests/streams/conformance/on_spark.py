"""Sources that tasks of Spark read: the parts of before, and another engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from tests.streams.conformance.databases import Postgres
from tests.streams.conformance.messages import Kafka, OfMariaDB, OfPostgres
from tests.streams.conformance.part import Part


class OnSpark(Part):
    """Everything goes through tasks, however little it is."""

    quick: ClassVar[bool] = True
    marks = (pytest.mark.at_scale(2),)

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        super().__init__(request, folder)  # type: ignore[call-arg]
        self.feed = replace(self.feed, engine="Spark")
        # Who asks for no source on Spark does not load it.
        from hudi_spark.jobs.ingests.kafka import tasks

        self.environment.setattr(tasks, "HERE_ROWS", -1)


class KafkaOnSpark(OnSpark, Kafka):
    """Messages of JSON in a topic."""

    label = "Kafka, on Spark"


class OfPostgresOnSpark(OnSpark, OfPostgres):
    """Change events of PostgreSQL."""

    label = "Debezium, PostgreSQL, on Spark"


class OfMariaDBOnSpark(OnSpark, OfMariaDB):
    """Change events of MariaDB."""

    label = "Debezium, MariaDB, on Spark"


class PostgresOnSpark(OnSpark, Postgres):
    """A table of PostgreSQL."""

    label = "Jdbc, PostgreSQL, on Spark"
