"""Messages of a topic, JSON of about 200 bytes, and who sends them: `python -m bench.stream_rows
BROKERS TOPIC fill COUNT KEYS`, or `… pace RATE SECONDS KEYS`.

In a process of its own, since who measures waits for others meanwhile.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.process import ROOT

KEYS = 1_000_000
PARTITIONS = 4
END_SECONDS_MAX = 60.0
_STEP = 611_953
"""A prime: keys come in no order, and none twice before all of them came once."""
_MIXED = 0x9E3779B97F4A7C15
EVERY = 1 << 40
"""Keys, of which none comes twice."""
_CITIES = (b"Amsterdam", b"Bogota", b"Chengdu", b"Dakar", b"Edmonton", b"Fukuoka", b"Gdansk", b"Hobart")
_MESSAGE = (
    b'{"id": "ride-%012d", "n": %d, "at": %d, "city": "%s", "driver": "driver-%011x", "fare": %d.%02d, "seats": %d, '
    b'"paid": %s, "note": "%024x"}'
)


def message(number: int, keys: int, at: float) -> bytes:
    """The message `number`, which happened at the second `at`."""
    drawn = number * _MIXED & (1 << 64) - 1
    return _MESSAGE % (
        number * _STEP % keys,
        number,
        int(at * 1000),
        _CITIES[number % 8],
        drawn >> 24,
        drawn % 90,
        drawn % 100,
        drawn % 6 + 1,
        b"true" if number % 3 else b"false",
        drawn * _MIXED & (1 << 96) - 1,
    )


def newest(count: int, keys: int) -> tuple[int, int]:
    """The rows of the table that has taken in `count` messages, and the sum of their numbers."""
    first = max(0, count - keys)
    return count - first, (first + count - 1) * (count - first) // 2


@contextmanager
def sending(brokers: str, topic: str, *what: str) -> Iterator[subprocess.Popen[bytes]]:
    """The sender's process beside what is done meanwhile, behind which it ends soon. Raises
    AssertionError if it did not send everything."""
    process = subprocess.Popen([sys.executable, "-m", "bench.stream_rows", brokers, topic, *what], cwd=ROOT)
    try:
        yield process
        assert process.wait(END_SECONDS_MAX) == 0
    finally:
        process.kill()
        process.wait()


def _fill(producer: Any, topic: str, count: int, keys: int) -> None:
    for number in range(count):
        _send(producer, topic, number, keys)


def _pace(producer: Any, topic: str, rate: float, seconds: float, keys: int) -> None:
    # A sender that is late catches up; each message says when it was sent.
    sent = 0
    for due in _due(rate, seconds):
        while sent < due:
            _send(producer, topic, sent, keys)
            sent += 1
        producer.poll(0)


def _due(rate: float, seconds: float) -> Iterator[int]:
    began = time.monotonic()
    while (now := time.monotonic()) < began + seconds:
        yield int((now - began) * rate)
        time.sleep(0.02)


def _send(producer: Any, topic: str, number: int, keys: int) -> None:
    value, partition = message(number, keys, time.time()), number * _STEP % keys % PARTITIONS
    while True:
        try:
            producer.produce(topic, value, partition=partition)
            break
        except BufferError:
            producer.poll(0.1)
    if number % 10_000 == 0:
        producer.poll(0)


def main() -> None:
    import confluent_kafka as kafka

    parser = argparse.ArgumentParser()
    parser.add_argument("brokers")
    parser.add_argument("topic")
    parser.add_argument("how", choices=["fill", "pace"])
    parser.add_argument("amount", type=float, help="messages, or messages a second")
    parser.add_argument("more", nargs="+", type=float, help="keys, or seconds and keys")
    asked = parser.parse_args()
    linger = 50 if asked.how == "fill" else 5
    producer = kafka.Producer({"bootstrap.servers": asked.brokers, "linger.ms": linger, "compression.type": "zstd"})
    if asked.how == "fill":
        _fill(producer, asked.topic, int(asked.amount), int(asked.more[0]))
    else:
        _pace(producer, asked.topic, asked.amount, asked.more[0], int(asked.more[1]))
    if producer.flush(END_SECONDS_MAX):
        sys.exit(f"messages to {asked.topic} were not sent")


if __name__ == "__main__":
    main()
