"""What of a record key is hashed, and how a `:` in it is read: what buckets and rings have in
common."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.codec.hashes.javahash import COLON_RULES
from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.write_options import COLON_RULE
from hudi_table.model.table.config import IndexSpec, TableConfig
from hudi_table.model.table.index_properties import HASH_FIELDS
from hudi_table.model.table.layouts import layout_of


def hash_fields(config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """(hashed fields of the record key, rule for colons) of a table's index. Raises
    InvalidOptionError."""
    fields = spec.hash_fields or config.record_key
    strange = [name for name in fields if name not in config.record_key]
    if strange:
        raise InvalidOptionError(
            f"{HASH_FIELDS} names {strange[0]!r}, which is no record key field ({', '.join(config.record_key)})"
        )
    rule = config.extra.get(COLON_RULE) or options.get(COLON_RULE) or layout_of(config.version).colon_rule
    if rule not in COLON_RULES:
        raise InvalidOptionError(f"{COLON_RULE} is {rule!r}; use one of {', '.join(COLON_RULES)}")
    if options.get(COLON_RULE, rule) != rule:
        raise InvalidOptionError(f"{COLON_RULE} is {options[COLON_RULE]!r}, but the table records {rule!r}")
    return fields, rule
