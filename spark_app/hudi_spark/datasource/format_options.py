"""Options of `format("hudi")`, as Spark hands them over: which there are, and what those of Hudi
mean in our terms.

Facts (pyspark 4.3): Spark lowers the names of options on their way; a view hands all of its options
to readers and writers, so either side accepts the names of both; `CREATE TABLE` without columns
asks for a schema with options of its own, `provider` among them, and keeps none of them for whoever
reads or writes the table later; the name of a stream's query comes as an option.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.model.options.known import admit, explicit_option, known_options
from hudi_table.model.options.values import boolean

STORAGE = "storage."
_HUDI = "hoodie."
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
QUERY = "hoodie.datasource.query.type"
INCREMENTAL_FORMAT = "hoodie.datasource.query.incremental.format"
FULL_SCAN = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
START_OFFSET = "hoodie.datasource.streaming.startOffset"
_READS = (
    "path", "columns", "filter", "meta", "asof", "query", "since", "until", "fullscan", "pushfilters", "maxinstantspertrigger",
    "as.of.instant", "timestampasof",
)  # fmt: skip
_WRITES = ("operation", "batch", "savemode", "partitionby", "checkpointlocation", "firstbatch", "queryname")
NO_CATALOG = (
    "a table of Spark's own catalog (CREATE TABLE … USING hudi, saveAsTable, writeTo, toTable) would be a name without a table behind it, for "
    "Spark keeps its location from sources in Python: use df.write.format('hudi').save(path), writeStream.format('hudi').start(path) or "
    "hudi_table.create_table, and CREATE TEMPORARY VIEW … USING hudi OPTIONS (path '…')"
)
_ADVICE = {
    "paths": "load one path; union the frames for more",
    "versionasof": "give as.of.instant",
    "provider": NO_CATALOG,
}
READ_KEYS = frozenset({BEGIN, END, QUERY, "hoodie.datasource.view.type", INCREMENTAL_FORMAT, FULL_SCAN, START_OFFSET})
"""Keys that say what is read. They act here; whatever else takes options of Hudi refuses them."""


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Options that were checked: our own by their lower-case names, those of Hudi by theirs, those
    of the store."""

    own: Mapping[str, str]
    hudi: Mapping[str, str]
    storage: Mapping[str, str]

    @property
    def path(self) -> str:
        """The table's location. Raises InvalidRequestError where Spark hands over none."""
        path = self.own.get("path")
        if not path:
            raise InvalidRequestError(f"no path: give spark.read.format('hudi').load(path); {NO_CATALOG}")
        if "*" in path:
            raise InvalidRequestError(
                f"the path {path!r} is a pattern: give the table's own path, which has all its partitions"
            )
        return path

    def one_of(self, what: str, **values: str | None) -> str | None:
        """The one value of options that mean the same, None without any. Raises InvalidOptionError
        where they differ."""
        found = {name: value for name, value in values.items() if value is not None}
        if len({value.lower() for value in found.values()}) > 1:
            raise InvalidOptionError(f"{what} is given twice: {', '.join(sorted(found.values()))}; leave one out")
        return next(iter(found.values()), None)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """An option of ours that is true or false. Raises InvalidOptionError."""
        return boolean(name, self.own[name]) if name in self.own else default


def format_options(options: Mapping[str, str]) -> FormatOptions:
    """Sort and check what Spark hands over. Raises InvalidOptionError that names an unknown option
    and the nearest known one."""
    own: dict[str, str] = {}
    hudi: dict[str, str] = {}
    storage: dict[str, str] = {}
    lower = {key.lower(): value for key, value in options.items()}
    for key in sorted(lower, key=lambda name: name not in _ADVICE):
        if key.startswith(STORAGE):
            storage[key.removeprefix(STORAGE)] = lower[key]
        elif key.startswith(_HUDI):
            hudi[_cased().get(key, key)] = lower[key]
        elif key in _READS or key in _WRITES:
            own[key] = lower[key]
        else:
            raise InvalidOptionError(_unknown(key))
    return FormatOptions(own, hudi, storage)


@cache
def _cased() -> Mapping[str, str]:
    """Known keys by their lower-case form."""
    return {key.lower(): key for key in known_options()}


def _unknown(key: str) -> str:
    if key in _ADVICE:
        return _ADVICE[key] if key == "provider" else f"option {key!r} is not taken by format('hudi'): {_ADVICE[key]}"
    near = difflib.get_close_matches(key, [*_READS, *_WRITES, "storage."], n=1, cutoff=0.6)
    return f"unknown option {key!r} of format('hudi')" + (f"; did you mean {near[0]!r}?" if near else "; remove it")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a reader is asked: the arguments of `HudiTable.scan`, or of `HudiTable.changes` where
    `query` is `cdc`.

    `meta` None: Hudi's columns come if the table has them, and no columns were chosen.
    """

    columns: tuple[str, ...] | None
    filter: str | None
    as_of: str | None
    meta: bool | None
    query: str
    since: str | None
    until: str | None
    full_scan: bool
    pushes: bool
    most_instants: str | None

    @classmethod
    def of(cls, spark_options: FormatOptions, *, streaming: bool = False) -> ReadRequest:
        """Raises InvalidOptionError for values that are none, contradict each other, or ask for
        what this release does not read."""
        own, hudi = spark_options.own, spark_options.hudi
        admit({key: value for key, value in hudi.items() if key not in READ_KEYS})
        query = _query(spark_options)
        since = spark_options.one_of("the begin", own=own.get("since"), hudi=_instant(hudi, BEGIN))
        if streaming:
            _refuse_in_stream(spark_options, query)
            since = spark_options.one_of("the begin", own=own.get("since"), hudi=hudi.get(START_OFFSET))
        elif explicit_option(hudi, QUERY) is not None and query in ("incremental", "cdc") and since is None:
            raise InvalidOptionError(f"{QUERY}=incremental needs {BEGIN}; 000 is from the first commit on")
        changes = streaming or query in ("incremental", "cdc")
        full = boolean(FULL_SCAN, hudi[FULL_SCAN]) if changes and FULL_SCAN in hudi else False
        names = tuple(name.strip() for name in own.get("columns", "").split(",") if name.strip())
        return cls(
            columns=names or None,
            filter=own.get("filter") or None,
            as_of=spark_options.one_of(
                "the moment", a=own.get("asof"), b=own.get("as.of.instant"), c=own.get("timestampasof")
            ),
            meta=spark_options.flag("meta") if "meta" in own else None,
            query=query,
            since=since,
            until=spark_options.one_of("the end", own=own.get("until"), hudi=_instant(hudi, END)),
            full_scan=spark_options.flag("fullscan", default=full),
            pushes=spark_options.flag("pushfilters"),
            most_instants=own.get("maxinstantspertrigger"),
        )


def _query(spark_options: FormatOptions) -> str:
    query = explicit_option(spark_options.hudi, QUERY)
    form = spark_options.hudi.get(INCREMENTAL_FORMAT, "latest_state").strip().lower()
    if form not in ("latest_state", "cdc"):
        raise InvalidOptionError(f"option {INCREMENTAL_FORMAT!r}: {form!r} is none of latest_state, cdc")
    if query is not None:
        query = query.strip().lower()
        if query not in ("snapshot", "read_optimized", "incremental"):
            raise InvalidOptionError(f"option {QUERY!r}: {query!r} is none of snapshot, read_optimized, incremental")
        query = "cdc" if query == "incremental" and form == "cdc" else query
    found = spark_options.one_of("the query", own=spark_options.own.get("query"), hudi=query) or "snapshot"
    if form == "cdc" and found != "cdc":
        raise InvalidOptionError(
            f"{INCREMENTAL_FORMAT}=cdc goes with {QUERY}=incremental, and the query is {found}: leave one out"
        )
    return found


def _instant(hudi: Mapping[str, str], key: str) -> str | None:
    """A bound of an incremental query; Hudi's users write the beginning of time as zeros."""
    text = hudi.get(key)
    if text is None or not text.strip() or (key == BEGIN and not text.strip().strip("0")):
        return None if text is None or key != BEGIN else "earliest"
    return text.strip()


def refuse_of_streams(spark_options: FormatOptions) -> None:
    """What says how a stream begins and goes on is not passed over by a batch. Raises
    InvalidOptionError."""
    for name in (START_OFFSET, "maxInstantsPerTrigger"):
        if name in spark_options.hudi or name.lower() in spark_options.own:
            raise InvalidOptionError(f"{name} goes with readStream: leave it out, or give query=incremental and since")


def _refuse_in_stream(spark_options: FormatOptions, query: str) -> None:
    """A stream is incremental by itself; what would make it something else is not passed over."""
    strange = [name for name in (BEGIN, END) if name in spark_options.hudi]
    strange += [name for name in ("until", "asof", "as.of.instant", "timestampasof") if name in spark_options.own]
    if query not in ("snapshot", "incremental"):
        strange.append(f"query={query}")
    if strange:
        raise InvalidOptionError(
            f"{strange[0]} does not go with a stream, which reads what changes: give since (or {START_OFFSET})"
        )
