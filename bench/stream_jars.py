"""Spark's source of Kafka for both Sparks of the race of streams, pinned in
`bench/stream_jars.sha256` and fetched by Spark itself. Standard library only."""

from __future__ import annotations

from pathlib import Path

from scripts.setup_env import ROOT, pinned_jars, refuse_wrong, resolve, wrong_jars

PINS = ROOT / "bench" / "stream_jars.sha256"
FOLDER = ROOT / ".cache" / "stream-jars"
PACKAGES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
)
"""The newest of Maven Central for Spark 3.5 and 4; either works with its environment's Spark."""


def fetch_stream_jars() -> None:
    """The jars that are missing or differ from their pins; one that still differs ends the
    process."""
    if wrong_jars(PINS, FOLDER):
        for package in PACKAGES:
            resolve(ROOT / ".venv", package, FOLDER)
        refuse_wrong(PINS, FOLDER, "bench BENCH=--streams")


def hudi_jars() -> list[Path]:
    """Of Spark 3.5."""
    return _jars("2.12", "kafka-clients-3.4.1", "commons-pool2-2.11.1")


def our_jars() -> list[Path]:
    """Of Spark 4."""
    return _jars("2.13", "kafka-clients-3.9.2", "commons-pool2-2.13.1")


def _jars(*parts: str) -> list[Path]:
    return [FOLDER / "jars" / name for name in pinned_jars(PINS) if any(part in name for part in parts)]
