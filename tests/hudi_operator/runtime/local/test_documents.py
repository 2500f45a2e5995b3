"""Manifests from files and folders, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hudi_operator.errors import InvalidSpecError
from hudi_operator.runtime.local.documents import load

TABLE = """
apiVersion: hudi.lakeops.dev/v1alpha1
kind: HudiTable
metadata: {name: NAME}
spec: {location: "file://${PWD}/lake", recordKey: [id]}
"""
SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: s3, namespace: lake}
stringData: {AWS_ACCESS_KEY_ID: a}
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_folder_gives_its_resources_and_secrets_and_leaves_the_rest(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", TABLE.replace("NAME", "b") + "---" + TABLE.replace("NAME", "a") + "---" + SECRET)
    write(tmp_path, "b.yml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: lake}\n---\n---\n")
    write(tmp_path, "notes.txt", "no: manifest")
    found = load([tmp_path])
    assert [d["metadata"]["name"] for d in found.resources] == ["a", "b"]
    assert found.secrets == {("lake", "s3"): {"AWS_ACCESS_KEY_ID": "a"}}
    assert found.skipped == ("Namespace default/lake",)


def test_locations_may_name_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = load([write(tmp_path, "a.yaml", TABLE.replace("NAME", "a"))]).resources
    assert found["spec"]["location"] == f"file://{tmp_path}/lake"


def test_a_list_of_kubectl_is_its_items(tmp_path: Path) -> None:
    items = [yaml.safe_load(TABLE.replace("NAME", name)) for name in ("a", "b")]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    assert [found["metadata"]["name"] for found in load([write(tmp_path, "a.yaml", text)]).resources] == ["a", "b"]


def test_what_is_merged_into_an_object_may_be_said_otherwise_by_it(tmp_path: Path) -> None:
    merged = "common: &common {a: 1, b: 2}\nmine: {<<: *common, a: 3}\n"
    (found,) = load([write(tmp_path, "a.yaml", TABLE.replace("NAME", "a").rstrip("\n") + "\n" + merged)]).resources
    assert found["mine"] == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TABLE.replace("NAME", "a").replace("PWD", "NOT_THERE"), "the environment has no NOT_THERE"),
        (TABLE.replace("NAME", "A_b"), "metadata.name is 'A_b'"),
        (TABLE.replace("NAME", "a") + "---" + TABLE.replace("NAME", "a"), "is there twice"),
        (TABLE.replace("NAME", "a").replace("v1alpha1", "v1"), "apiVersion is 'hudi.lakeops.dev/v1'"),
        (TABLE.replace("NAME", "a").replace("HudiTable", "HudiTabel"), "kind 'HudiTabel' is none of"),
        (TABLE.replace("NAME", '"a\\n"'), "metadata.name is 'a\\n'"),
        ("kind: HudiTable\nmetadata: {}\nkind: TableService\n", "a key is there twice in one object: line 3, column 1"),
        ("kind: [", "no YAML"),
        ("- 1\n", "is no Kubernetes resource"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: lake}\n", "no HudiTable or TableService"),
        (SECRET.replace("stringData", "data"), "use stringData"),
        (SECRET.replace("ID: a", "ID: 1"), "stringData must be strings"),
    ],
)
def test_what_is_wrong_is_told_with_its_file(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path, "a.yaml", text)
    with pytest.raises(InvalidSpecError) as caught:
        load([path])
    assert "a.yaml" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("  AWS_SECRET_ACCESS_KEY: {canary-7f3a", "no YAML: line "),
        ("  AWS_SECRET_ACCESS_KEY: *canary-7f3a", "no YAML: line 6, column 26"),
        ("  AWS_SECRET_ACCESS_KEY: '2026-99-99'\n  canary-7f3a: 2026-99-99", "no YAML: a value of it cannot be read"),
        ("  AWS_SECRET_ACCESS_KEY: canary-7f3a\x01", "no YAML: character "),
        ("  AWS_SECRET_ACCESS_KEY: canary-7f3a\udcff", "no YAML: byte "),
        ("  canary-7f3a: " + "[" * 5000, "no YAML: "),
    ],
)
def test_a_manifest_that_cannot_be_read_is_told_by_its_place_alone(tmp_path: Path, line: str, words: str) -> None:
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s3}}\ntype: Opaque\nstringData:\n{line}\n"
    path = tmp_path / "a.yaml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidSpecError) as caught:
        load([path])
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)


def test_every_fault_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    paths = [write(tmp_path, "a.yaml", "- 1"), write(tmp_path, "b.yaml", "- 2"), tmp_path / "c.yaml"]
    with pytest.raises(InvalidSpecError) as caught:
        load(paths)
    assert all(name in str(caught.value) for name in ("a.yaml", "b.yaml", "c.yaml: no such file"))
