"""Writes the drawings of the pages, `docs/pictures/*.svg`: `python -m scripts.render_pictures`
(`make pictures`). A test compares.

A picture is boxes on a grid and arrows between them. It carries its own light ground, so that it
reads on a dark page, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 64, 70, 56, 24
"""Of a box, of the space between boxes, and around all of them; in pixels."""
STYLE = (
    "text{font:14px system-ui,sans-serif;fill:#12302f;text-anchor:middle}.s{font-size:12px;fill:#41615f}"
    ".b{fill:#e6f4f2;stroke:#00897b;stroke-width:1.5}.d{fill:#fff6e0;stroke:#b7791f;stroke-width:1.5}"
    ".a{stroke:#41615f;stroke-width:1.5;fill:none;marker-end:url(#h)}"
)
HEAD = '<marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#41615f"/></marker>'


@dataclass(frozen=True, slots=True)
class Box:
    """`at`: column and row on the grid. `stored`: drawn as something that lies in a store."""

    at: tuple[float, float]
    title: str
    says: str = ""
    stored: bool = False

    @property
    def corner(self) -> tuple[float, float]:
        """Of its left and upper edge, in pixels."""
        return MARGIN + self.at[0] * (WIDTH + GAP_X), MARGIN + self.at[1] * (HEIGHT + GAP_Y)

    def drawn(self) -> str:
        """The box with its lines as SVG."""
        x, y = self.corner
        middle = x + WIDTH / 2
        lines = [
            f'<rect class="{"d" if self.stored else "b"}" x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
        ]
        lines.append(f'<text x="{middle:g}" y="{y + (28 if self.says else 37):g}">{escape(self.title)}</text>')
        if self.says:
            lines.append(f'<text class="s" x="{middle:g}" y="{y + 47:g}">{escape(self.says)}</text>')
        return "".join(lines)


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes by their names, and arrows `(from, to, word)` between them."""

    title: str
    boxes: dict[str, Box]
    arrows: tuple[tuple[str, str, str], ...]

    def svg(self) -> str:
        """The file's text."""
        wide = max(box.corner[0] for box in self.boxes.values()) + WIDTH + MARGIN
        high = max(box.corner[1] for box in self.boxes.values()) + HEIGHT + MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" role="img">',
            f"<title>{escape(self.title)}</title><style>{STYLE}</style><defs>{HEAD}</defs>",
            f'<rect width="{wide:g}" height="{high:g}" rx="12" fill="#fbfefd"/>',
            *(_arrow(self.boxes[start], self.boxes[end], word) for start, end, word in self.arrows),
            *(box.drawn() for box in self.boxes.values()),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"


def _arrow(start: Box, end: Box, word: str) -> str:
    """A straight line from edge to edge: sideways where the boxes stand in one row, else up or
    down."""
    (x1, y1), (x2, y2) = start.corner, end.corner
    if y1 == y2:
        right = x2 > x1
        line = (x1 + (WIDTH if right else 0), y1 + HEIGHT / 2, x2 + (0 if right else WIDTH), y2 + HEIGHT / 2)
        words = ((line[0] + line[2]) / 2, line[1] - 8)
    else:
        down = y2 > y1
        line = (x1 + WIDTH / 2, y1 + (HEIGHT if down else 0), x2 + WIDTH / 2, y2 + (0 if down else HEIGHT))
        words = ((line[0] + line[2]) / 2 + (48 if x1 == x2 else 0), (line[1] + line[3]) / 2 + 4)
    shown = f'<text class="s" x="{words[0]:g}" y="{words[1]:g}">{escape(word)}</text>' if word else ""
    return '<path class="a" d="M{:g} {:g}L{:g} {:g}"/>'.format(*line) + shown


OVERVIEW = Picture(
    "The operator starts jobs, jobs write tables, and every engine reads them",
    {
        "you": Box((0, 0), "HudiTable", "what you apply"),
        "operator": Box((1, 0), "hudi_operator", "plans, reports status"),
        "job": Box((2, 0), "job: hudi_spark", "ingests and services"),
        "python": Box((0, 1), "your Python program"),
        "library": Box((1, 1), "hudi_table", "the format, on Arrow"),
        "table": Box((2, 1), "Hudi table", "S3, GCS, Azure, disk", stored=True),
        "engines": Box((2, 2), "Apache Hudi, hudi-rs", "other readers of Hudi"),
    },
    (
        ("you", "operator", ""),
        ("operator", "job", "starts"),
        ("python", "library", ""),
        ("operator", "library", "reads"),
        ("job", "table", "writes"),
        ("library", "table", ""),
        ("engines", "table", "read"),
    ),
)
PROTOCOL = Picture(
    "A write, from its claim to its publication",
    {
        "tail": Box((0, 0), "1 tail", "read the chain's end"),
        "claim": Box((1, 0), "2 claim", "T.commit.requested"),
        "snapshot": Box((2, 0), "3 snapshot", "list the timeline"),
        "files": Box((2, 1), "4 files", "marker, then data file"),
        "decide": Box((1, 1), "5 decide", "create the next slot"),
        "publish": Box((0, 1), "6 publish", "create T.commit"),
        "conflict": Box((1, 2), "WriteConflict", "another changed it first"),
        "chain": Box((2, 2), ".hoodie/.txn/<n>.json", "the decision chain", stored=True),
    },
    (
        ("tail", "claim", ""),
        ("claim", "snapshot", ""),
        ("snapshot", "files", ""),
        ("files", "decide", ""),
        ("decide", "publish", "created"),
        ("decide", "conflict", "conflict"),
        ("decide", "chain", ""),
    ),
)
FILE_GROUP = Picture(
    "The life of a file group of a merge-on-read table",
    {
        "insert": Box((0, 0), "insert", "commit t1"),
        "upsert": Box((1, 0), "upsert", "commit t2"),
        "compact": Box((2, 0), "compaction", "commit t3"),
        "clean": Box((3, 0), "cleaning", "later"),
        "base": Box((0, 1), "base file t1", "slice 1", stored=True),
        "log": Box((1, 1), "base file t1 + log t2", "slice 1", stored=True),
        "merged": Box((2, 1), "base file t3", "slice 2; slice 1 stays", stored=True),
        "left": Box((3, 1), "base file t3", "slice 2", stored=True),
    },
    (
        ("insert", "base", ""),
        ("upsert", "log", ""),
        ("compact", "merged", ""),
        ("clean", "left", ""),
        ("base", "log", ""),
        ("log", "merged", ""),
        ("merged", "left", ""),
    ),
)
RECONCILE = Picture(
    "One reconcile",
    {
        "watch": Box((0, 0), "watch", "a resource changed"),
        "observe": Box((1, 0), "observe", "timeline, source, jobs"),
        "plan": Box((2, 0), "plan", "pure: effects"),
        "execute": Box((2, 1), "execute", "start or stop a job"),
        "report": Box((1, 1), "report", "status and conditions"),
        "wait": Box((0, 1), "queue", "until the next reconcile"),
    },
    (
        ("watch", "observe", ""),
        ("observe", "plan", ""),
        ("plan", "execute", ""),
        ("execute", "report", ""),
        ("report", "wait", ""),
        ("wait", "watch", ""),
    ),
)
PICTURES = {"overview": OVERVIEW, "commit-protocol": PROTOCOL, "file-group": FILE_GROUP, "reconcile": RECONCILE}

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture.svg(), encoding="utf-8")
