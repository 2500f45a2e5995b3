"""Indexes of other packages: found by name, stored by name, refused before anything is written,
checked when they answer.

Omitted: what they do for a table, which `test_conformance.py` holds one of them to.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError, UnsupportedTableError
from hudi_table.model.names import PROPERTIES
from hudi_table.model.table.config import IndexSpec, IndexType
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.kept_properties import KEPT
from tests.support.index_package import installed_package, written_package
from tests.support.written import contents, new_table, rows

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "writing.md"
CLASS = "hoodie.index.class"


@pytest.fixture(scope="module")
def package() -> Iterator[Path]:
    with installed_package() as folder:
        yield folder


def custom(name: str, **settings: str) -> dict[str, object]:
    return {"type": "Custom", "class": name, "settings": settings}


def untouched(table: HudiTable) -> bool:
    """Whether nobody has claimed an instant of the table."""
    return {info.path for info in table.context.storage.list()} <= {PROPERTIES, KEPT}


def test_an_index_is_stored_by_name_with_its_settings_and_found_again(package: Path) -> None:
    table = new_table(index=custom("whole-scan", **{"global": "true"}))
    stored = table.context.storage.get(".hoodie/hoodie.properties").decode()
    assert f"{CLASS}=whole-scan" in stored
    assert "hoodie.lakeops.index.global=true" in stored
    again = open_table(table.base_path)
    assert again.context.config.index == IndexSpec(
        IndexType.CUSTOM, class_name="whole-scan", settings=(("global", "true"),)
    )
    again.insert(rows(("a", "x", 1)))
    again.upsert(rows(("a", "y", 2)))
    assert contents(again) == [("a", "y", 2)]


def test_the_options_of_hudi_name_an_index_and_override_its_type(package: Path) -> None:
    table = new_table(index=None, options={CLASS: "whole-scan", "hoodie.lakeops.index.global": "true"})
    assert table.context.config.index == IndexSpec(
        IndexType.CUSTOM, class_name="whole-scan", settings=(("global", "true"),)
    )
    same = {"hoodie.index.type": "SIMPLE", CLASS: "whole-scan", "hoodie.lakeops.index.global": "true"}
    table.upsert(rows(("a", "x", 1)), options=same)
    assert contents(table) == [("a", "x", 1)]
    resource = {"type": "Custom", "className": "whole-scan", "settings": {"global": "true"}}
    assert new_table(index=resource).context.config.index == table.context.config.index


def test_a_table_that_stores_no_index_takes_one_from_the_options_of_each_write(package: Path) -> None:
    table = new_table()
    properties = table.context.storage.get(".hoodie/hoodie.properties").decode()
    bare = "".join(line for line in properties.splitlines(True) if not line.startswith("hoodie.index.type"))
    table.context.storage.put(".hoodie/hoodie.properties", bare.encode())
    table.context.storage.delete(KEPT)
    again = open_table(table.base_path)
    again.upsert(rows(("a", "x", 1)), options={CLASS: "whole-scan"})
    again.upsert(rows(("a", "x", 2)), options={CLASS: "whole-scan"})
    assert contents(again) == [("a", "x", 2)]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (custom("nobody-has-it"), "no installed package offers an index 'nobody-has-it'"),
        (custom("broken-module"), "'broken-module' cannot be loaded: ModuleNotFoundError"),
        (
            custom("broken-factory"),
            "'broken-factory' does not take this table: RuntimeError: this index takes no table",
        ),
        (custom("whole-scan", depth="3"), "unknown settings"),
        ({"type": "Custom"}, "needs the name under which a package offers it"),
        ({"type": "Simple", "class": "whole-scan"}, "class and settings belong to a Custom index"),
        ({"type": "Custom", "settings": {"a": "b"}}, "needs the name"),
    ],
)
def test_a_table_of_an_index_that_is_not_to_be_had_is_not_created(package: Path, index: object, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=re.escape(message)):
        new_table("memory://not-created/t", index=index)
    with pytest.raises(InvalidRequestError):
        open_table("memory://not-created/t")


def test_the_names_that_are_offered_are_told(package: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"or use one of .*whole-scan"):
        new_table(index=custom("whole-scna"))


def test_a_write_where_the_package_is_missing_is_refused_before_it_begins_and_reads_go_on(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(index=custom("whole-scan"))
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(package)])
    with pytest.raises(InvalidOptionError, match="no installed package offers an index 'whole-scan'"):
        table.upsert(rows(("a", "x", 1)))
    assert untouched(table)
    assert contents(table) == []


def test_two_packages_of_one_name_are_refused_by_both_names(package: Path, tmp_path: Path) -> None:
    with (
        written_package(tmp_path, "other", "def made(config, settings): ...", "whole-scan = other:made"),
        pytest.raises(InvalidOptionError, match="other:made, whole_scan:whole_scan"),
    ):
        new_table(index=custom("whole-scan"))


@pytest.mark.parametrize("index", ["Simple", {"type": "Custom", "className": "other"}])
def test_an_index_that_is_given_twice_and_differs_is_refused(package: Path, index: str | dict[str, str]) -> None:
    with pytest.raises(
        InvalidRequestError, match=r"option hoodie\.index\.class is 'whole-scan'; leave one of the two out"
    ):
        new_table(index=index, options={CLASS: "whole-scan"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({CLASS: "other"}, "hoodie.index.class=other contradicts the table, which stores whole-scan"),
        ({"hoodie.index.type": "SIMPLE"}, "hoodie.index.class=SIMPLE contradicts the table, which stores whole-scan"),
        ({"hoodie.lakeops.index.global": "true"}, "index.global=true contradicts the table's index, which has no such"),
        ({"hoodie.index.type": "CUSTOM"}, "needs hoodie.index.class"),
    ],
)
def test_options_that_contradict_the_stored_index_are_refused(
    package: Path, options: dict[str, str], message: str
) -> None:
    table = new_table(index=custom("whole-scan"))
    with pytest.raises(InvalidOptionError, match=re.escape(message)):
        table.upsert(rows(("a", "x", 1)), options=options)
    assert untouched(table)


def test_a_global_index_does_not_go_with_merge_on_read_by_event_time(package: Path) -> None:
    with pytest.raises(UnsupportedTableError, match="global index"):
        new_table(
            index=custom("whole-scan", **{"global": "true"}),
            type="MergeOnRead", ordering_fields="ts", merge_mode="EventTime",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raises", "failed: KeyError: 'the index lost its way'"),
        ("nothing", "returned NoneType"),
        ("short", "routed 1 row of 2"),
        ("outside", "codes outside"),
        ("group", "no file group of the snapshot"),
        ("partition", "sends a row of partition 'x' to partition 'elsewhere'"),
        ("deletes", "deletes of rows or slots that are not there"),
        ("lost", "which is no file group"),
    ],
)
def test_a_wrong_answer_is_refused_and_nothing_is_left_of_the_write(package: Path, how: str, message: str) -> None:
    table = new_table(index=custom("broken-answer", how=how))
    table.insert(rows(("a", "x", 1)))
    with pytest.raises(InvalidRequestError, match=re.escape(message)):
        table.upsert(rows(("a", "x", 2), ("b", "x", 3)))
    assert contents(table) == [("a", "x", 1)]
    assert not load_timeline(table.context).pending


def test_the_example_of_the_page_works(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    module = next(block for block in blocks if "class Recent" in block)
    entry = re.search(
        r"^\[project\.entry-points\.\"hudi_table\.indexes\"\]\n(.*?)$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert entry is not None
    with written_package(tmp_path, "recent_index", module, entry[1].replace('"', "")):
        table = new_table(index=custom("recent", partitions="2"))
        for city in "xyz":
            table.insert(rows((f"key-{city}", city, 1)))
        table.upsert(rows(("key-y", "z", 2), ("key-x", "z", 3)))
        # y is one of the two newest partitions, x is not: its row stays.
        assert contents(table) == [("key-x", "x", 1), ("key-x", "z", 3), ("key-y", "z", 2), ("key-z", "z", 1)]
