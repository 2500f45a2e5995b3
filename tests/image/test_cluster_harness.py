"""What the harness of the end-to-end cluster promises without a cluster: it ends its own processes
alone, and makes images.

That the parts make a cluster is tested by `make e2e`.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from e2e.cluster import images, processes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(processes, "RECORDS", tmp_path / "processes")
    monkeypatch.setattr(processes, "LOGS", tmp_path / "logs")
    return tmp_path


def test_a_process_runs_until_it_is_stopped(folder: Path) -> None:
    processes.start("sleeper", "sleep", "600", inside=False)
    assert processes.is_running("sleeper")
    assert list(processes.recorded()) == ["sleeper"]
    assert processes.stop("sleeper")
    assert not processes.is_running("sleeper")
    assert list(processes.recorded()) == []


def test_starting_again_starts_nothing(folder: Path) -> None:
    processes.start("sleeper", "sleep", "600", inside=False)
    record = (folder / "processes" / "sleeper.json").read_text()
    processes.start("sleeper", "sleep", "600", inside=False)
    assert (folder / "processes" / "sleeper.json").read_text() == record
    processes.stop("sleeper")


def test_another_process_that_got_the_same_id_is_left_alone(folder: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        (folder / "processes").mkdir()
        (folder / "processes" / "sleeper.json").write_text(json.dumps({"pid": other.pid, "began": "1"}))
        assert not processes.is_running("sleeper")
        assert not processes.stop("sleeper")
        assert other.poll() is None
        other.kill()


def test_one_that_ends_at_once_tells_why(folder: Path) -> None:
    processes.start("failing", "sh", "-c", "echo no such device; exit 1", inside=False)
    with pytest.raises(RuntimeError, match="no such device"):
        processes.check("failing", 0.5)


def test_a_program_becomes_an_image_that_is_whole(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_bytes(b"\x7fELF")
    archive = images.program_image("localhost/server:1", program, tmp_path / "server.tar")
    with tarfile.open(archive) as tar:
        entries = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    manifest, config = json.loads(entries["manifest.json"])[0], json.loads(entries["config.json"])
    assert manifest["RepoTags"] == ["localhost/server:1"]
    assert config["config"]["Entrypoint"] == ["/server"]
    assert config["config"]["User"] == "65532:65532"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(entries[manifest['Layers'][0]]).hexdigest()}"]


def test_only_layers_that_the_node_lacks_are_handed_over(tmp_path: Path) -> None:
    blobs = tmp_path / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    listed = {"config": {"digest": "sha256:c"}, "layers": [{"digest": "sha256:old"}, {"digest": "sha256:new"}]}
    (blobs / "m").write_text(json.dumps(listed))
    found = images._blobs(tmp_path, "sha256:m", {"sha256:old"})
    assert found == ["blobs/sha256/m", "blobs/sha256/c", "blobs/sha256/new"]
