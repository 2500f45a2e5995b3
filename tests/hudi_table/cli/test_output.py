"""What a terminal is shown: nothing that it would obey, nulls that differ from texts, lines that
fit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table import create_table
from hudi_table.cli import main
from hudi_table.cli.output import Column, Document, note


class TestWhatATerminalIsShown:
    """Nothing that it would obey, and lines that fit it."""

    def test_control_characters_are_escaped_in_cells_headings_and_remarks(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = Document("List", (Column("name", "a\x1b[2J"),), [{"name": "x\x1b[31m\u202ey"}], data=True)
        for form in ("table", "markdown", "name"):
            assert "\x1b" not in document.render(form)
            assert "x\\x1b[31m\\u202ey" in document.render(form)
        note("two\nlines\x07")
        assert capsys.readouterr().err == "two\nlines\\x07\n"

    def test_nulls_differ_from_a_dash_and_nested_values_are_json(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data = pa.table({"id": [1, 2], "s": ["-", None], "n": [{"a": ["ü", None]}, None]})
        create_table(str(tmp_path / "t"), data.schema, record_key="id").upsert(data)
        assert main(["query", str(tmp_path / "t"), "select s, n from t order by id"]) == 0
        assert capsys.readouterr().out.splitlines()[1:] == ['-      {"a": ["ü", null]}', "NULL   NULL"]

    def test_columns_stand_below_each_other_whatever_the_script(self) -> None:
        cities = ["Zürich", "東京", "Zu\u0308rich", "🙂"]
        document = Document("List", (Column("c", "city"), Column("n", "n")), [{"c": c, "n": "1"} for c in cities])
        lines = document.render("table").splitlines()
        assert lines == ["CITY     N", "Zürich   1", "東京     1", "Zu\u0308rich   1", "🙂       1"]
        cut = Document("List", (Column("c", "city"),), [{"c": "東" * 20}]).render("table", width=20).splitlines()
        assert cut[1] == "東" * 9 + "…"

    def test_long_cells_are_cut_to_the_width_of_a_line(self) -> None:
        columns = tuple(Column(name, name) for name in ("a", "b", "c"))
        document = Document("List", columns, [{"a": "x" * 200, "b": "y" * 20, "c": "z"}], data=True)
        (_, line) = document.render("table", width=60).splitlines()
        assert len(line) == 60
        assert "x…" in line
        assert "y" * 20 in line
        assert len(document.render("table").splitlines()[1]) == 227
        assert len(document.render("table", width=10).splitlines()[1]) <= 12 + 3 + 12 + 3 + 12
