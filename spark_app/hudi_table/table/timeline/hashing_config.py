"""The numbers of buckets by partition that Hudi stores beside the timeline.

Facts (measured on Hudi 1.1.1): the procedure `partition_bucket_index_manager` rewrites the table by
a replacecommit and says so in
`.hoodie/.bucket_index/partition_bucket_index_meta/configs/<instant>.hashing_config`, JSON of
`expressions`, `defaultBucketNumber`, `rule`, `version` and `instant`. What the DataFrame writer is
given as options it stores nowhere.
"""

from __future__ import annotations

from hudi_table.errors import CorruptTableError
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import HOODIE
from hudi_table.model.table.partition_buckets import Rules, parse_rules
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

FOLDER = ".bucket_index"
CONFIGS = f"{HOODIE}/{FOLDER}/partition_bucket_index_meta/configs"
_SUFFIX = ".hashing_config"


def stored_rules(ctx: TableContext, timeline: Timeline) -> tuple[Rules, int] | None:
    """The rules and the number for all other partitions that Hudi stored last; None if it stored
    none.

    Raises CorruptTableError for a file that is none.
    """
    if FOLDER not in timeline.folders:
        return None
    _, files = ctx.storage.list_dir(CONFIGS)
    names = [info.path.rpartition("/")[2] for info in files]
    pending = {instant.time for instant in timeline.pending}
    times = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX) and not name.startswith(".")]
    found = max((time for time in times if time not in pending), default=None, key=comparable_time)
    if found is None:
        return None
    path = f"{CONFIGS}/{found}{_SUFFIX}"
    try:
        document = parse_json(ctx.storage.get(path))
        return parse_rules(document["expressions"]), int(document["defaultBucketNumber"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{path} is no configuration of buckets: {error}", base_path=ctx.base_path, path=path
        ) from error
