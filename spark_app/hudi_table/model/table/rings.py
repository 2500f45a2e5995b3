"""Hash rings: which file group of a partition holds which hashes, how a ring begins, and how its
nodes split and merge.

Facts (measured on Hudi 0.15.0 and 1.1.1). A node holds the hashes after the node before it up to
its own value; those after the last node belong to the first. N nodes begin at `min(i * ceil((2^31 -
1) / N), 2^31 - 1)`, i = 1…N, and node i's file id prefix is the name-based UUID (version 3) of the
value before, its own value, both as 8 bytes big-endian, and the partition path. One node is one
file group, whose id is the prefix and `-0`. A split halves a node's range: the new lower node and
one in its place. A merge deletes neighbours and puts a new node in the place of the last.
`numBuckets` stays the number that the ring began with; `seqNo` counts the changes.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudi_table.model.json_text import parse_json

HASH_MAX = 0x7FFFFFFF
INITIAL_INSTANT = "00000000000000"
NORMAL, REPLACE, DELETE = "NORMAL", "REPLACE", "DELETE"
_VERSION = 0
_SUFFIX = "-0"


@dataclass(frozen=True, slots=True)
class Node:
    """The hashes up to `value` (included) after the node before. `prefix` is None of a node that is
    to go (`DELETE`)."""

    value: int
    prefix: str | None
    tag: str = NORMAL

    @property
    def file_id(self) -> str:
        """The id of its file group."""
        return f"{self.prefix}{_SUFFIX}"

    def document(self) -> dict[str, Any]:
        """As Hudi writes it."""
        return {"value": self.value, "fileIdPrefix": self.prefix, "tag": self.tag}

    @classmethod
    def of(cls, document: Any) -> Node:
        """The inverse of `document`. Raises ValueError, KeyError or TypeError for what is no
        node."""
        value, prefix, tag = int(document["value"]), document["fileIdPrefix"], document["tag"]
        if not 0 <= value <= HASH_MAX or tag not in (NORMAL, REPLACE, DELETE) or (prefix is None) != (tag == DELETE):
            raise ValueError(f"{document} is no node of a ring")
        return cls(value, prefix, tag)


@dataclass(frozen=True, slots=True)
class Ring:
    """The ring of one partition as of the commit `instant`; `nodes` are in the order of their
    values."""

    partition: str
    nodes: tuple[Node, ...]
    buckets: int
    instant: str = INITIAL_INSTANT
    sequence: int = 0

    @classmethod
    def initial(cls, partition: str, buckets: int) -> Ring:
        """The ring that a partition begins with: every writer makes the same one."""
        return cls(partition, tuple(_first_nodes(partition, buckets)), buckets)

    @property
    def is_initial(self) -> bool:
        """Whether it has never changed."""
        return self.instant == INITIAL_INSTANT

    def node_at(self, place: int) -> Node:
        """The node that holds a hash."""
        return next((node for node in self.nodes if place <= node.value), self.nodes[0])

    def position(self, file_id: str) -> int | None:
        """Which node's the file group is, None if it is none's."""
        return next((at for at, node in enumerate(self.nodes) if node.file_id == file_id), None)

    def split(self, position: int, prefixes: tuple[str, str]) -> tuple[Node, ...] | None:
        """The nodes that take a node's place, lower half first; None if its range is too small."""
        value, before = self.nodes[position].value, self.nodes[position - 1].value
        middle = ((before + value + (0 if before < value else HASH_MAX + 1)) >> 1) & HASH_MAX
        if middle in (before, value):
            return None
        return Node(middle, prefixes[0], REPLACE), Node(value, prefixes[1], REPLACE)

    def merge(self, positions: Sequence[int], prefix: str) -> tuple[Node, ...]:
        """What becomes of neighbours, given in the order of the ring: the last holds the hashes of
        all."""
        gone = [Node(self.nodes[at].value, None, DELETE) for at in positions[:-1]]
        return *gone, Node(self.nodes[positions[-1]].value, prefix, REPLACE)

    def changed(self, changes: Iterable[Node], instant: str) -> Ring:
        """The ring after the commit `instant` has put the changes in place. Raises ValueError if
        nothing would be left."""
        nodes = {node.value: node for node in self.nodes}
        for node in changes:
            if node.tag == DELETE:
                nodes.pop(node.value, None)
            else:
                nodes[node.value] = replace(node, tag=NORMAL)
        if not nodes:
            raise ValueError("a ring keeps one node at least")
        kept = tuple(nodes[value] for value in sorted(nodes))
        return replace(self, nodes=kept, instant=instant, sequence=self.sequence + 1)

    def to_json(self) -> bytes:
        """As Hudi writes it."""
        document = {
            "version": _VERSION,
            "partitionPath": self.partition,
            "instant": self.instant,
            "numBuckets": self.buckets,
            "seqNo": self.sequence,
            "nodes": [node.document() for node in self.nodes],
        }
        return json.dumps(document, indent=2).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Ring:
        """The inverse of `to_json`. Raises ValueError for what is no ring."""
        try:
            document = parse_json(data)
            nodes = sorted(map(Node.of, document["nodes"]), key=lambda node: node.value)
            ring = cls(
                document["partitionPath"],
                tuple(nodes),
                int(document["numBuckets"]),
                document["instant"],
                int(document["seqNo"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"it lacks {error}") from error
        values = [node.value for node in nodes]
        if not nodes or len(set(values)) < len(values):
            raise ValueError("its nodes are none, or share a value")
        return ring


def nodes_text(nodes: Iterable[Node]) -> str:
    """A list of nodes as a clustering plan names them."""
    return json.dumps([node.document() for node in nodes])


def parse_nodes(text: str) -> tuple[Node, ...]:
    """The inverse of `nodes_text`. Raises ValueError."""
    try:
        return tuple(map(Node.of, parse_json(text)))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{text[:100]} are no nodes of a ring") from error


def new_prefix(seed: uuid.UUID, partition: str, value: int) -> str:
    """The prefix of a node that a commit makes: the same for everybody who carries the commit
    out."""
    return str(uuid.uuid5(seed, f"{partition}/ring/{value}"))


def _first_nodes(partition: str, buckets: int) -> Iterable[Node]:
    step, before = -(-HASH_MAX // buckets), 0
    for number in range(1, buckets + 1):
        value = min(step * number, HASH_MAX)
        named = before.to_bytes(8, "big") + value.to_bytes(8, "big") + partition.encode()
        digest = hashlib.md5(named, usedforsecurity=False).digest()
        yield Node(value, str(uuid.UUID(bytes=digest, version=3)))
        before = value
