"""How somebody asks for an index by a name: `secondary_index_<name>=<column>`, and
`expr_index_<name>=<function>(<column>)` with `using bloom_filters` and options behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_table.model.metadata_table import EXPRESSION_INDEX, SECONDARY_INDEX, MetadataPartition

OF = "="
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*", re.ASCII)
"""A name that Hudi takes for a folder's and finds in SQL."""
_ASKED = re.compile(
    r"(?P<function>[a-z_]+)\((?P<column>[^()]+)\)(?: +using +(?P<using>column_stats|bloom_filters))?(?P<options>.*)"
)
_OPTION = re.compile(r" +(\w+)=(?:'([^']*)'|([^ ']+))", re.ASCII)


@dataclass(frozen=True, slots=True)
class AskedExpression:
    """The `function` of a `column` with the function's `options`, and `using` what it tells of a
    file."""

    column: str
    function: str
    options: Mapping[str, str] = field(default_factory=dict)
    using: str = str(MetadataPartition.COLUMN_STATS)

    def __str__(self) -> str:
        default = str(MetadataPartition.COLUMN_STATS)
        using = f" using {self.using}" if self.using != default else ""
        return f"{self.function}({self.column}){using}" + "".join(
            f" {key}='{value}'" for key, value in sorted(self.options.items())
        )


def is_expression_asked(text: str) -> bool:
    """Whether what is said of an index is an expression and no column."""
    return _ASKED.fullmatch(text.strip()) is not None


def asked_expression(text: str) -> AskedExpression | None:
    """What a text as `date_format(day) format='yyyy-MM'` asks for; None for one that is no
    expression."""
    found = _ASKED.fullmatch(text.strip())
    if found is None or _OPTION.sub("", found["options"]).strip():
        return None
    options = {key: quoted or plain for key, quoted, plain in _OPTION.findall(found["options"])}
    using = found["using"] or str(MetadataPartition.COLUMN_STATS)
    return AskedExpression(found["column"].strip(), found["function"], options, using)


def asked_text(name: str, of: str | AskedExpression) -> str:
    """The text that asks for the index of this name, of a column or of an expression."""
    return f"{SECONDARY_INDEX if isinstance(of, str) else EXPRESSION_INDEX}{name}{OF}{of}"
