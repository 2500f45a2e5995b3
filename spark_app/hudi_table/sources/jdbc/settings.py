"""What is asked of a source of type Jdbc, as a JobSpec says it. User and password come from the
environment alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.ranges import Range

PARTS_MAX = 16
_URL = re.compile(
    r"(?P<scheme>postgresql|mysql|mariadb)://(?P<host>[A-Za-z0-9.-]+)(:(?P<port>[0-9]{1,5}))?/(?P<database>[A-Za-z0-9_.-]+)",
    re.ASCII,
)
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
_TLS = {"Prefer": "prefer", "Require": "require", "VerifyFull": "verify-full"}


@dataclass(frozen=True, slots=True)
class JdbcSettings:
    """`scheme` of the URL names the database. `table` (`schema.name`) or `query`; `filter`: a
    condition of the database's SQL. `column`: by which rows are read, those from `lag` below the
    greatest value that was read on: seconds of a time, a number of numbers. `within`: those of
    these values alone. `parts` connections read at once, by ranges of `split`."""

    scheme: str
    host: str
    port: int
    database: str
    table: str = ""
    query: str = ""
    filter: str = ""
    column: str = ""
    lag: int = 0
    within: Range | None = None
    split: str = ""
    parts: int = 1
    infinite_is_null: bool = False
    tls: str = "prefer"

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.host}:{self.port}/{self.database}"

    @property
    def statement(self) -> dict[str, str]:
        """Of each field that says which rows are meant a digest. A database may move to another
        host: of the URL its name counts alone."""
        given = {"url": self.database, "table": self.table, "query": self.query, "filter": self.filter}
        return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in given.items() if text}

    def base(self, quoted: Callable[[str], str]) -> str:
        """The query of all rows that are meant. `quoted`: how a name is written."""
        if self.query:
            relation = f"({self.query}\n) AS source"
        else:
            relation = f"{'.'.join(map(quoted, self.table.split('.')))} AS source"
        return f"SELECT * FROM {relation}" + (f" WHERE ({self.filter}\n)" if self.filter else "")

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> JdbcSettings:
        """From the `source` of a JobSpec. Raises InvalidRequestError that names the field."""
        raw = source.get("jdbc")
        if not isinstance(raw, Mapping) or not raw.get("url"):
            raise InvalidRequestError("a source of type Jdbc needs jdbc.url")
        url = _checked(str(raw["url"]))
        if bool(raw.get("table")) == bool(raw.get("query")):
            raise InvalidRequestError("a source of type Jdbc needs jdbc.table or jdbc.query, one of them")
        grows, split = raw.get("incremental") or {}, raw.get("split") or {}
        parts = int(split.get("parts", 1))
        if not 1 <= parts <= PARTS_MAX:
            raise InvalidRequestError(f"jdbc.split.parts is {parts}; give 1 to {PARTS_MAX}")
        within = Range.of(source)
        if within is not None and not grows:
            raise InvalidRequestError("a range of type Jdbc goes by the column of jdbc.incremental: give that, too")
        tls = str(raw.get("tls", "Prefer"))
        if tls not in _TLS:
            raise InvalidRequestError(f"jdbc.tls is {tls!r}; give one of {', '.join(_TLS)}")
        return cls(
            scheme=url["scheme"],
            host=url["host"],
            port=int(url["port"] or _PORTS[url["scheme"]]),
            database=url["database"],
            table=str(raw.get("table") or ""),
            query=str(raw.get("query") or "").rstrip().removesuffix(";"),
            filter=str(raw.get("filter") or ""),
            column=str(grows.get("column") or ""),
            lag=int(grows.get("lag", 0)),
            within=within,
            split=str(split.get("column") or ""),
            parts=parts,
            infinite_is_null=raw.get("infinite") == "AsNull",
            tls=_TLS[tls],
        )


def _checked(url: str) -> re.Match[str]:
    found = _URL.fullmatch(url)
    if found is None:
        raise InvalidRequestError(
            "jdbc.url is no postgresql://, mysql:// or mariadb://host[:port]/database, without user and options"
        )
    return found
