"""What `hudictl checkpoint` takes beside the table."""

from __future__ import annotations

import argparse


def checkpoint_action(parser: argparse.ArgumentParser) -> None:
    """What is to be done: it stands before the table."""
    actions = ("show", "set", "replay-plan")
    parser.add_argument("action", choices=actions, help="set needs INGEST and OFFSETS, replay-plan INGEST")


def checkpoint_arguments(parser: argparse.ArgumentParser) -> None:
    """Of all its actions."""
    parser.add_argument("ingest", metavar="INGEST", nargs="?", help="name of the ingest; show: only this one")
    parser.add_argument(
        "offsets",
        metavar="OFFSETS",
        nargs="?",
        help="set: of one topic, the next to read, as orders,0:120,1:98; of a stream of Kinesis, the last that was read, as orders,shardId-000000000000:495",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="set: go back, though the ingest inserts, and rows that come again are there twice",
    )
    parser.add_argument(
        "--manifest",
        metavar="FILE",
        help="replay-plan: the HudiTable, by which the brokers are asked what they still have",
    )
    parser.add_argument(
        "--backfill", action="store_true", help="replay-plan: print the HudiTable with the ingests that read it again"
    )
