"""What `hudictl import`, `hudictl bootstrap` and `hudictl checkpoint` take."""

from __future__ import annotations

import argparse


def import_arguments(parser: argparse.ArgumentParser) -> None:
    """As `hudi_table.importing.import_table` names them."""
    parser.add_argument(
        "source", metavar="SOURCE", help="path or URI of the folder or table, or of an Iceberg table's metadata file"
    )
    parser.add_argument("--format", choices=("parquet", "delta", "iceberg", "hudi"), help="of SOURCE (what lies there)")
    parser.add_argument(
        "--source-version", metavar="N", help="version of a Delta table, snapshot of an Iceberg table (newest)"
    )
    parser.add_argument(
        "--catalog", metavar="NAME", help="a catalog of pyiceberg's configuration: SOURCE is a table there"
    )
    parser.add_argument(
        "--source-storage", metavar="KEY=VALUE", action="append", default=[], help="option of SOURCE's store, as --storage of the table's",
    )  # fmt: skip
    parser.add_argument(
        "--record-key", metavar="A,B", help="columns that identify a row (identifier fields of Iceberg)"
    )
    _described(parser, "Simple, Bloom, Bucket, … (Simple)")
    parser.add_argument("--buckets", type=int, metavar="N", help="of --index Bucket")
    parser.add_argument(
        "--duplicates", choices=("refuse", "newest"), default="refuse",
        help="newest keeps one of the rows with one key, by --ordering-fields (refuse)",
    )  # fmt: skip


def bootstrap_arguments(parser: argparse.ArgumentParser) -> None:
    """As `hudi_table.bootstrapping.bootstrap_table` names them."""
    parser.add_argument("source", metavar="SOURCE", help="path or URI of the folder of Parquet files")
    parser.add_argument("--record-key", metavar="A,B", required=True, help="columns that identify a row")
    parser.add_argument(
        "--mode", choices=("MetadataOnly", "FullRecord"), default="MetadataOnly",
        help="MetadataOnly leaves the rows where they are, FullRecord copies them (MetadataOnly)",
    )  # fmt: skip
    parser.add_argument(
        "--pattern",
        metavar="REGEX",
        help="only partitions whose path it matches are of --mode, all others of the other",
    )
    _described(parser, "Simple, GlobalSimple, Bloom or GlobalBloom (Simple)")


def _described(parser: argparse.ArgumentParser, indexes: str) -> None:
    """What else both say of a table."""
    parser.add_argument("--partition-by", metavar="A,B", help="columns, '' for none (what SOURCE is divided by)")
    parser.add_argument("--ordering-fields", metavar="A,B", help="of rows of one key the largest is the newest")
    parser.add_argument("--type", choices=("CopyOnWrite", "MergeOnRead"), help="of the table (CopyOnWrite)")
    parser.add_argument("--index", metavar="TYPE", help=indexes)
    parser.add_argument("--table-version", type=int, metavar="N", help="6, 8 or 9 (9)")
    parser.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="a hoodie.* option of the table or the write",
    )  # fmt: skip


def checkpoint_action(parser: argparse.ArgumentParser) -> None:
    """What is to be done: it stands before the table."""
    actions = ("show", "set", "replay-plan")
    parser.add_argument(
        "action", choices=actions, help="set needs INGEST and OFFSETS or --from-commit, replay-plan INGEST"
    )


def checkpoint_arguments(parser: argparse.ArgumentParser) -> None:
    """Of all actions of `checkpoint`, beside the table."""
    parser.add_argument("ingest", metavar="INGEST", nargs="?", help="name of the ingest; show: only this one")
    parser.add_argument(
        "offsets",
        metavar="OFFSETS",
        nargs="?",
        help="set: of one topic, the next to read, as orders,0:120,1:98; of a stream of Kinesis, the last that was read, as orders,shardId-000000000000:495; of Jdbc and Sql 'COLUMN VALUE', of Hudi INSTANT, of Custom 'NAME POSITION', of Files 'before MOMENT'",
    )
    parser.add_argument(
        "--from-commit",
        metavar="INSTANT",
        help="set: where the ingest was in this commit of the table, in place of OFFSETS",
    )
    parser.add_argument(
        "--of",
        metavar="LOCATION",
        help="set: of Hudi the other table, of Files their folder: by it OFFSETS are checked",
    )
    parser.add_argument(
        "--type",
        choices=("Files", "Jdbc", "Hudi", "Custom"),
        help="set: of which type the source is, where the ingest has no checkpoint yet",
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
