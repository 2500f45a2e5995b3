"""Hudi Streamer 0.14.0 itself, a run at a time: it takes what a topic has behind its checkpoint
into a table, and ends."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.setup_streamer import VENV, jars

RUN_SECONDS_MAX = 240


@dataclass(frozen=True, slots=True)
class Streamer:
    """A job of Hudi Streamer of one topic of JSON messages. `fields`: of its Avro schema, as JSON
    has them; `more`: properties over the defaults; `checkpoint`: what its command is given as
    `--checkpoint`."""

    folder: Path
    brokers: str
    topic: str
    location: Path
    fields: list[dict[str, Any]]
    more: dict[str, str]
    table_type: str = "COPY_ON_WRITE"
    checkpoint: str = ""

    def run(self) -> None:
        """What the topic has by now goes into the table. Raises AssertionError with the end of its
        log."""
        python = VENV / "bin" / "python"
        if not python.exists():
            pytest.fail("Hudi Streamer is not there: make setup-streamer")
        schema, settings = self.folder / "streamer.avsc", self.folder / "streamer.properties"
        schema.write_text(json.dumps({"type": "record", "name": "message", "fields": self.fields}))
        properties = {
            "bootstrap.servers": self.brokers,
            "auto.offset.reset": "earliest",
            "hoodie.streamer.source.kafka.topic": self.topic,
            "hoodie.streamer.schemaprovider.source.schema.file": f"file://{schema}",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.metadata.enable": "false",
            **self.more,
        }
        settings.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        asked = {
            "jars": [str(path) for path in jars()],
            "fields": {
                "targetBasePath": f"file://{self.location}",
                "targetTableName": self.location.name,
                "tableType": self.table_type,
                "sourceClassName": "org.apache.hudi.utilities.sources.JsonKafkaSource",
                "schemaProviderClassName": "org.apache.hudi.utilities.schema.FilebasedSchemaProvider",
                "sourceOrderingField": "n",
                "propsFilePath": f"file://{settings}",
                **({"checkpoint": self.checkpoint} if self.checkpoint else {}),
            },
        }
        unwanted = ("SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        env = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        script = Path(__file__).with_name("streamer_session.py")
        done = subprocess.run(
            [python, script, json.dumps(asked)],
            env=env | {"PYSPARK_PYTHON": str(python), "TZ": "UTC"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
