"""Spark's source of Kafka for the Spark of Apache Hudi in the race of streams, pinned in
`bench/stream_jars.sha256` and fetched by Spark itself. Standard library only."""

from __future__ import annotations

from pathlib import Path

from scripts.setup_env import ROOT, pinned_jars, refuse_wrong, resolve, wrong_jars

PINS = ROOT / "bench" / "stream_jars.sha256"
FOLDER = ROOT / ".cache" / "stream-jars"
PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7"
"""The newest of Maven Central for Spark 3.5."""


def fetch_stream_jars() -> None:
    """The jars that are missing or differ from their pins; one that still differs ends the
    process."""
    if wrong_jars(PINS, FOLDER):
        resolve(ROOT / ".venv", PACKAGE, FOLDER)
        refuse_wrong(PINS, FOLDER, "bench BENCH=--streams")


def hudi_jars() -> list[Path]:
    """Of Spark 3.5."""
    return [FOLDER / "jars" / name for name in pinned_jars(PINS)]
