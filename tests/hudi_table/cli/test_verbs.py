"""What the verbs print: info, timeline, files, read, explain, in every format."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from hudi_table import create_table, open_table, write_hudi
from hudi_table.cli import main
from hudi_table.cli.output import FORMATS, Column, Document
from hudi_table.cli.queries import info
from hudi_table.read.output.human import age, number, size
from tests.support import golden
from tests.support.s3 import ACCESS, running_s3

ROWS = pa.table(
    {
        "id": [f"k{i:03d}" for i in range(150)],
        "city": [("sf", "ny")[i % 2] for i in range(150)],
        "n": range(150),
    }
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "flights"
    index = {"type": "Bucket", "buckets": 2}
    table = create_table(str(folder), ROWS.schema, record_key="id", partition_by="city", index=index, version=6)
    write_hudi(table, ROWS)
    write_hudi(table, pa.table({"id": ["k001", "new"], "city": ["ny", "ny"], "n": [-1, -2]}))
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def test_info_says_what_the_table_is(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = {k: v for k, _, v in (line.partition("   ") for line in run(capsys, "info", base).splitlines())}
    facts = {key.strip(): value.strip() for key, value in lines.items()}
    assert facts["Name"] == "flights"
    assert facts["Record key"] == "id"
    assert facts["Partition by"] == "city"
    assert facts["Index"] == "Bucket, 2 buckets"
    assert facts["Rows"] == "151"
    assert facts["Columns"] == "id string, city string, n int64"
    raw = json.loads(run(capsys, "info", base, "-o", "json"))
    assert raw["apiVersion"] == "hudi.lakeops.dev/v1alpha1"
    assert (raw["kind"], raw["rows"], raw["partitions"], raw["fileGroups"]) == ("TableInfo", 151, 2, 4)
    assert raw["ageSeconds"] < 3600


def test_every_line_of_info_is_explained() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text()
    section = page.partition("## What `hudictl info` shows")[2].partition("\n## ")[0]
    titles = [column.title for column in (*info._COLUMNS, *info._LOG_COLUMNS)]
    assert len(titles) > 30
    assert [title for title in titles if title not in section] == []


def test_timeline_lists_instants_newest_first(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = json.loads(run(capsys, "timeline", base, "-o", "json"))["items"]
    assert [i["instant"] for i in items] == sorted((i["instant"] for i in items), reverse=True)
    assert (items[0]["inserted"], items[0]["updated"], items[0]["operation"]) == (1, 1, "upsert")
    assert len(json.loads(run(capsys, "timeline", base, "-o", "json", "--limit", 1))["items"]) == 1
    head, first, *_ = run(capsys, "timeline", base).splitlines()
    assert head.split()[:3] == ["INSTANT", "ACTION", "STATE"]
    assert first.split()[:3] == [items[0]["instant"], "commit", "completed"]


def test_files_shows_groups_with_their_slices(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = json.loads(run(capsys, "files", base, "-o", "json"))["items"]
    assert len(items) == 4
    rewritten = [item for item in items if len(item["slices"]) == 2]
    assert {item["partition"] for item in rewritten} == {"ny"}
    for item in items:
        assert item["sizeBytes"] == (base / item["baseFile"]).stat().st_size
    assert {
        i["partition"] for i in json.loads(run(capsys, "files", base, "-o", "json", "--partition", "sf"))["items"]
    } == {"sf"}


@pytest.mark.parametrize("verb", ["info", "timeline", "files"])
def test_every_format_says_the_same(verb: str, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {form: run(capsys, verb, base, "-o", form) for form in FORMATS}
    raw, from_yaml = json.loads(texts["json"]), yaml.safe_load(texts["yaml"])
    for document in (raw, from_yaml):
        for item in document.get("items", [document]):
            item.pop("ageSeconds", None)
    assert from_yaml == raw
    items = raw.get("items", [raw])
    first_key = next(key for key in items[0] if key not in ("apiVersion", "kind"))
    assert texts["name"].splitlines() == [item[first_key] for item in items]
    table = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert [row[first_key] for row in table] == [item[first_key] for item in items]
    assert texts["markdown"].splitlines()[1].startswith("| ---")
    assert len(texts["wide"].splitlines()[0]) >= len(texts["table"].splitlines()[0])
    assert not set("│┃─|") & set(texts["table"])


def test_golden_merge_on_read_tables_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = golden.unpack("mor1", tmp_path).base
    about = run(capsys, "info", base)
    assert "MergeOnRead" in about
    assert [line.split()[-1] for line in about.splitlines() if line.startswith("Log files")] == ["2"]
    # A compaction of Hudi completed before the last deltacommit.
    assert [line.split()[1:] for line in about.splitlines() if line.startswith("Compaction")] == [["not", "due"]]
    assert "deltacommit" in run(capsys, "timeline", base)
    assert [item["logFiles"] for item in json.loads(run(capsys, "files", base, "-o", "json"))["items"]] == [1, 1]
    target = tmp_path / "rows.jsonl"
    assert main(["read", str(base), "--format", "jsonl", "--to", str(target)]) == 0
    assert len(target.read_text().splitlines()) == len(golden.unpack("mor1", tmp_path / "again").rows())


class TestRead:
    """`hudictl read`: formats, selection, files."""

    def test_rows_as_json_lines(self, base: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        assert (
            main(["read", str(base), "--format", "jsonl", "--filter", "city = 'ny' and n < 2", "--columns", "n,id"])
            == 0
        )
        lines = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
        assert sorted(lines, key=lambda row: row["n"]) == [{"n": -2, "id": "new"}, {"n": -1, "id": "k001"}]

    def test_a_table_is_cut_at_a_hundred_rows_and_says_so(
        self, base: Path, capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        assert main(["read", str(base)]) == 0
        captured = capsysbinary.readouterr()
        assert captured.out.splitlines()[0].split() == [b"id", b"city", b"n"]
        assert len(captured.out.splitlines()) == 101
        assert captured.err.startswith(b"the first 100 rows")
        assert main(["read", str(base), "--limit", "150"]) == 0
        captured = capsysbinary.readouterr()
        assert len(captured.out.splitlines()) == 151
        assert captured.err == b""

    def test_parquet_goes_to_a_file_that_appears_whole(self, base: Path, tmp_path: Path) -> None:
        target = tmp_path / "rows.parquet"
        assert main(["read", str(base), "--format", "parquet", "--to", str(target), "--meta"]) == 0
        found = pq.read_table(target)
        assert (found.num_rows, found.num_columns) == (151, 8)
        assert list(tmp_path.iterdir()) == [target]

    def test_a_failed_read_leaves_no_file(self, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        target = tmp_path / "rows.jsonl"
        assert main(["read", str(base), "--format", "jsonl", "--to", str(target), "--columns", "nope"]) == 2
        assert list(tmp_path.iterdir()) == []
        assert main(["read", str(base), "--format", "jsonl", "--to", str(tmp_path / "no" / "x")]) == 1
        assert "No such file or directory" in capsys.readouterr().err

    def test_earlier_rows_by_instant(self, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
        instants = [i["instant"] for i in json.loads(run(capsys, "timeline", base, "-o", "json"))["items"]]
        target = base.parent / "then.jsonl"
        assert main(["read", str(base), "--as-of", instants[1], "--format", "jsonl", "--to", str(target)]) == 0
        rows = {row["id"]: row["n"] for row in map(json.loads, target.read_text().splitlines())}
        assert (len(rows), rows["k001"]) == (150, 1)

    def test_changes_between_two_instants(self, base: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        asked = ["read", str(base), "--query", "cdc", "--columns", "n", "--format", "jsonl"]
        last, *earlier = [row["instant"] for row in open_table(str(base)).history().to_pylist()]
        assert main([*asked, "--since", earlier[0]]) == 0
        changes = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
        assert {change["ts_ms"] for change in changes} == {last}
        assert [c for c in changes if c["op"] == "u"] == [
            {"op": "u", "ts_ms": last, "before": {"n": 1}, "after": {"n": -1}}
        ]
        assert main([*asked, "--since", earlier[0], "--images", "op_key_only", "--limit", "1"]) == 0
        (only,) = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
        assert list(only) == ["op", "record_key"]

    def test_every_type_becomes_json(self, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        row: dict[str, Any] = {
            "id": 'quote " back \\ slash',
            "text": "line\nbreak \x01 é 😀",
            "ok": True,
            "n": 2**60,
            "f": 0.1,
            "bad": math.nan,
            "price": Decimal("1.10"),
            "raw": b"\x00\xff",
            "day": date(2024, 2, 29),
            "at": datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
            "list": [1, None],
            "map": [("k", 1.5)],
            "place": {"zip": 1, "since": date(2000, 1, 1)},
            "none": None,
        }
        schema = pa.schema(
            [
                *((name, pa.string()) for name in ("id", "text")),
                ("ok", pa.bool_()),
                ("n", pa.int64()),
                ("f", pa.float64()),
                ("bad", pa.float64()),
                ("price", pa.decimal128(9, 2)),
                ("raw", pa.binary()),
                ("day", pa.date32()),
                ("at", pa.timestamp("us", tz="UTC")),
                ("list", pa.list_(pa.int32())),
                ("map", pa.map_(pa.string(), pa.float64())),
                ("place", pa.struct([("zip", pa.int32()), ("since", pa.date32())])),
                ("none", pa.string()),
            ]
        )
        table = create_table(str(tmp_path / "t"), schema, record_key="id", version=6)
        write_hudi(table, pa.Table.from_pylist([row], schema=schema))
        assert main(["read", str(tmp_path / "t"), "--format", "jsonl"]) == 0
        text = capsysbinary.readouterr().out
        assert json.loads(text, parse_float=Decimal) == row | {
            "f": Decimal("0.1"),
            "bad": None,
            "raw": base64.b64encode(b"\x00\xff").decode(),
            "day": "2024-02-29",
            "at": "2024-02-29T01:02:03.000004Z",
            "map": {"k": Decimal("1.5")},
            "place": {"zip": 1, "since": "2000-01-01"},
        }
        assert text.count(b"\n") == 1
        assert main(["read", str(tmp_path / "t"), "--columns", "text,none,raw"]) == 0
        assert capsysbinary.readouterr().out.decode().splitlines()[1].split("   ")[0] == "line\\nbreak \\x01 é 😀"

    def test_no_row_is_said_on_stderr(self, base: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        assert main(["read", str(base), "--filter", "n > 1000"]) == 0
        assert capsysbinary.readouterr() == (b"", b"no row to show\n")


@pytest.mark.s3
def test_a_table_on_s3_is_read_by_arguments_and_by_environment(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    with running_s3() as server:
        uri = server.new_uri()
        table = create_table(
            uri, ROWS.schema, record_key="id", partition_by="city", storage_options=server.options, version=6
        )
        write_hudi(table, ROWS)
        options = [word for key, value in server.options.items() for word in ("--storage", f"{key}={value}")]
        assert main(["read", uri, "--format", "jsonl", "--filter", "city = 'sf' and n < 3", *options]) == 0
        by_arguments = sorted(capsysbinary.readouterr().out.splitlines())
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS["access_key_id"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ACCESS["secret_access_key"])
        assert main(["read", uri, "--format", "jsonl", "--filter", "city = 'sf' and n < 3"]) == 0
        by_environment = sorted(capsysbinary.readouterr().out.splitlines())
        assert (
            by_arguments == by_environment == [b'{"id":"k000","city":"sf","n":0}', b'{"id":"k002","city":"sf","n":2}']
        )


class TestHumanNumbers:
    """Sizes, ages and counts as people read them."""

    @pytest.mark.parametrize(
        ("count", "text"),
        [
            (None, "-"),
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10_240, "10.0 KiB"),
            (435_223, "425 KiB"),
            (1024**2 - 1, "1.00 MiB"),
            (5 * 1024**4, "5.00 TiB"),
        ],
    )
    def test_sizes_have_three_digits(self, count: int | None, text: str) -> None:
        assert size(count) == text

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (None, "-"),
            (-5, "0s"),
            (42, "42s"),
            (119, "119s"),
            (130, "2m10s"),
            (300, "5m"),
            (7000, "116m"),
            (20_000, "5h"),
            (1_000_000, "11d"),
        ],
    )
    def test_ages_shrink_to_what_matters(self, seconds: int | None, text: str) -> None:
        assert age(seconds) == text

    def test_counts_mark_thousands(self) -> None:
        assert (number(336776), number(None)) == ("336,776", "-")


def test_headings_are_bold_only_where_styles_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    from hudi_table.cli.output import styled

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert styled(Terminal())
    assert not styled(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not styled(Terminal())
    document = Document("XList", (Column("a", "A"),), [{"a": 1}])
    assert document.render("table", bold=True) == "\x1b[1mA\x1b[0m\n1\n"
    assert document.render("table") == "A\n1\n"


class TestCompact:
    """`hudictl compact`: what is planned and executed, and that it says when there is nothing to
    do."""

    @pytest.fixture
    def logged(self, tmp_path: Path) -> Path:
        """A merge-on-read table with two logs in one of its groups."""
        index = {"type": "Bucket", "buckets": 1}
        table = create_table(
            str(tmp_path / "t"), ROWS.schema, record_key="id", index=index, type="MergeOnRead", version=6
        )
        write_hudi(table, ROWS)
        for value in (-1, -2):
            write_hudi(table, pa.table({"id": ["k001"], "city": ["ny"], "n": [value]}))
        return tmp_path / "t"

    def test_nothing_is_done_before_it_is_due(self, logged: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["compact", str(logged)]) == 0
        assert "no compaction waits, and none is due; --now" in capsys.readouterr().err

    def test_a_plan_is_made_and_executed_apart(self, logged: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (planned,) = json.loads(run(capsys, "compact", logged, "--now", "--schedule", "-o", "json"))["items"]
        assert planned["logFiles"] == 2
        assert f"planned at {planned['instant']}" in run(capsys, "info", logged, "--fail-on", "pending")
        (done,) = json.loads(run(capsys, "compact", logged, "-o", "json"))["items"]
        assert (done["instant"], done["rowsWritten"]) == (planned["instant"], 150)
        assert [row["logFiles"] for row in json.loads(run(capsys, "files", logged, "-o", "json"))["items"]] == [0]

    def test_options_decide_when_and_logs_are_compacted_on_request(
        self, logged: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert "logs compacted" in run(capsys, "compact", logged, "--logs", "--now")
        option = "hoodie.compact.inline.max.delta.commits=2"
        assert "compacted" in run(capsys, "compact", logged, "--option", option)
        assert main(["compact", str(logged), "--option", "hoodie.compact.inline"]) == 2
        assert "has no '='" in capsys.readouterr().err


def test_the_first_checkpoint_of_an_ingest_is_told_for_its_name_may_be_a_slip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = str(tmp_path / "t")
    create_table(base, pa.schema([("id", pa.int64())]), record_key="id", version=6).upsert(pa.table({"id": [1]}))
    said = []
    for name in ("feed", "feed", "fede"):
        assert main(["checkpoint", "set", base, name, "orders,0:7"]) == 0
        said.append(capsys.readouterr().err.splitlines()[1:])
    assert said == [
        ["it had no checkpoint before"],
        [],
        ["it had no checkpoint before; those of feed stay as they are"],
    ]
