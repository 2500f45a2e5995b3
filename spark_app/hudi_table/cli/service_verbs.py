"""The verbs of table services: what each says of itself and takes. Whatever deletes or rewrites is
a dry run until `--yes`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceVerb:
    """`help` is one line; `arguments` are added to the verb's parser beside those of every verb;
    `nouns` are the services that it runs, as in `table.services`; `folder` is that of its
    module."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    nouns: tuple[str, ...] = ()
    folder: str = "services"

    def aliases(self, verb: str) -> list[str]:
        """What the verb is called by its nouns: hudictl takes them, too."""
        return [name for noun in self.nouns if (name := noun.replace("_", "-")) != verb]


def _compact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--now", action="store_true", help="plan whatever logs there are, due or not")
    parser.add_argument("--schedule", action="store_true", help="only plan; whoever executes it may do so at any time")
    parser.add_argument("--logs", action="store_true", help="log compaction: one log in the place of many")
    _option(parser, "hoodie.compaction.strategy=UnBounded")


def _cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do it; without this, only say what would be done")
    parser.add_argument("--now", action="store_true", help="plan whatever small files there are, due or not")
    parser.add_argument(
        "--schedule", action="store_true", help="only plan; until it is executed its files take no writes"
    )
    _option(parser, "hoodie.clustering.plan.strategy.sort.columns=city,ts")


def _resize(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("buckets", metavar="BUCKETS", type=int, help="how many each partition is to have")
    parser.add_argument("--yes", action="store_true", help="do it; without this, only say what it costs")
    parser.add_argument("--plan", metavar="DIGEST", default="", help="exactly the plan that a dry run showed")
    _option(parser, "hoodie.parquet.compression.codec=zstd")


def _clean(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="delete")
    parser.add_argument("--plan", metavar="DIGEST", help="exactly the plan that a dry run showed")
    _option(parser, "hoodie.clean.commits.retained=3")


def _ttl(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", metavar="N", type=int, help="drop the partitions that no write reached for so long")
    parser.add_argument("--yes", action="store_true", help="drop them; without this, only say which")
    parser.add_argument("--plan", metavar="DIGEST", default="", help="exactly the plan that a dry run showed")
    _option(parser, "hoodie.partition.ttl.management.strategy.type=KEEP_BY_CREATION_TIME")


def _savepoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--create", metavar="INSTANT", nargs="?", const="newest", help="keep this commit (the newest)")
    parser.add_argument("--comment", metavar="TEXT", default="", help="why")
    parser.add_argument("--delete", metavar="INSTANT", help="let go of this one")
    _writers_stopped(parser)


def _archive(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do it; without it, only what would leave is shown")
    parser.add_argument("--now", action="store_true", help="whatever may leave, however little")
    _option(parser, "hoodie.keep.max.commits=30")


def _metadata(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--build", action="store_true", help="build it, while writers go on")
    what.add_argument("--drop", action="store_true", help="switch it off and delete it")
    what.add_argument(
        "--drop-index",
        metavar="NAME",
        action="append",
        default=[],
        help="drop the index of a secondary key or an expression that has this name, and nothing else; repeat for more",
    )
    parser.add_argument(
        "--index",
        metavar="NAME",
        action="append",
        default=[],
        help="with --build: also column_stats, partition_stats, bloom_filters, record_index, partitioned_record_index, "
        "secondary_index_NAME=COLUMN or expr_index_NAME=FUNCTION(COLUMN); repeat for more",
    )
    _option(parser, "hoodie.metadata.global.record.level.index.min.filegroup.count=10")
    parser.add_argument("--yes", action="store_true", help="do it")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        action="store_true",
        help="read every page and block of the newest slices too, to find damaged rows: takes as long as reading the table",
    )
    parser.add_argument(
        "--keys",
        action="store_true",
        help="read every key too, to find those that come twice, or are not those of their rows",
    )
    parser.add_argument(
        "--mend",
        action="store_true",
        help="first put back what another engine dropped from the properties, and delete what killed writers left unfinished",
    )
    parser.add_argument(
        "--quarantine", action="store_true", help="list the files that no reader uses; with --yes, move them"
    )
    parser.add_argument("--yes", action="store_true", help="with --quarantine: really move them; none is deleted")
    parser.add_argument("--put-back", metavar="TIME", help="move the files of a quarantine back")


def _rollback(parser: argparse.ArgumentParser) -> None:
    _going_back(parser, "instant")
    parser.add_argument(
        "--lost",
        metavar="FILE",
        action="append",
        default=[],
        help="a file that the pending compaction INSTANT names and that is lost for good: its rows are given up; several times",
    )


def _restore(parser: argparse.ArgumentParser) -> None:
    _going_back(parser, "savepoint")


def _upgrade(parser: argparse.ArgumentParser) -> None:
    _version(parser, "9 or 8")


def _downgrade(parser: argparse.ArgumentParser) -> None:
    _version(parser, "8 or 6")


def _version(parser: argparse.ArgumentParser, which: str) -> None:
    parser.add_argument("--to", metavar="VERSION", type=int, required=True, help=f"the table version: {which}")
    parser.add_argument("--yes", action="store_true", help="do it; without, only say what would be rewritten")
    parser.add_argument("--resume", action="store_true", help="go on where a process that has ended began")
    parser.add_argument("--savepoint", action="store_true", help="keep the newest write as it is before")
    parser.add_argument(
        "--reader",
        metavar="ENGINE:VERSION",
        action="append",
        default=[],
        help="who reads the table, such as Trino:476; one that could no longer read it is a refusal; repeat for more",
    )


def _keystore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="read all keys, to find those that the store lacks")
    parser.add_argument("--rebuild", action="store_true", help="what forgetting and taking in all keys means")
    parser.add_argument("--yes", action="store_true", help="do it")


def _going_back(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(what, metavar=what.upper(), help="its instant, 17 digits")
    parser.add_argument("--yes", action="store_true", help="do it; without, only say what would go")
    _writers_stopped(parser)


def _writers_stopped(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--writers-stopped", action="store_true", help="all processes that write the table have ended")


def _option(parser: argparse.ArgumentParser, example: str) -> None:
    parser.add_argument("--option", metavar="KEY=VALUE", action="append", default=[], help=f"such as {example}")


SERVICE_VERBS: Mapping[str, ServiceVerb] = {
    "compact": ServiceVerb(
        "merges its logs into base files, where that is planned or due", _compact, ("compaction", "log_compaction")
    ),
    "cluster": ServiceVerb(
        "rewrites its small files into few, where that is planned or due", _cluster, ("clustering",)
    ),
    "resize": ServiceVerb("rewrites it into another number of buckets", _resize, ("resize",)),
    "clean": ServiceVerb("deletes old versions of its files, which nothing needs", _clean, ("cleaning",)),
    "ttl": ServiceVerb("drops partitions that have outlived their time", _ttl, ("partition_ttl",)),
    "archive": ServiceVerb(
        "moves its oldest instants to the archived timeline, where that is due", _archive, ("archiving",)
    ),
    "metadata": ServiceVerb("shows, builds and drops its metadata table", _metadata, ("indexing",)),
    "savepoint": ServiceVerb("shows, makes and drops commits that are kept from cleaning", _savepoint, ("savepoint",)),
    "rollback": ServiceVerb("takes its newest write back", _rollback, ("rollback",)),
    "restore": ServiceVerb("goes back to a savepoint", _restore, ("restore",)),
    "upgrade": ServiceVerb("brings it to a later table version", _upgrade, ("upgrade",), "versions"),
    "downgrade": ServiceVerb("brings it to an earlier table version", _downgrade, folder="versions"),
    "keystore": ServiceVerb("shows what the store of an external index has of it, and fills it anew", _keystore),
    "doctor": ServiceVerb("looks for what is wrong with its files and timeline", _doctor, ("repair",)),
}
