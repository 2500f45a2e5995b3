"""Images on the node: those that are one program are made here, the others are handed over by what
built them."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

from e2e.cluster.binaries import path_of
from e2e.cluster.places import CONTAINERD, DATA

PAUSE = "localhost/pause:1"
S3 = "localhost/versitygw:1"
USER = "65532:65532"
_NAMESPACE = "k8s.io"
_REF_NAME = "org.opencontainers.image.ref.name"


def ctr(*arguments: str, check: bool = True) -> str:
    """Run containerd's client. Raises RuntimeError with what it said."""
    command = ["ctr", "--address", str(CONTAINERD), "--namespace", _NAMESPACE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def answers() -> bool:
    """Whether containerd listens."""
    try:
        ctr("version")
    except RuntimeError:
        return False
    return True


def load_pause() -> None:
    """What holds the namespaces of a pod."""
    if PAUSE not in ctr("images", "list", "--quiet").split():
        with tempfile.TemporaryDirectory(dir=DATA) as folder:
            load(program_image(PAUSE, path_of("pause"), Path(folder, "pause.tar")))


def load(archive: Path) -> None:
    """Give the node the image of an archive."""
    ctr("images", "import", str(archive))


def hand_over(image: str, folder: Path) -> None:
    """Give the node an image that buildah holds: only the layers that it lacks. `folder` keeps what
    was handed over before."""
    name = hashlib.sha256(image.encode()).hexdigest()[:16]
    # Not compressed: nobody downloads it.
    command = ["buildah", "push", "--quiet", "--disable-compression", image, f"oci:{folder}:{name}"]
    subprocess.run(command, check=True)
    index = json.loads((folder / "index.json").read_text())
    # What an earlier push gave this name stays in the index, without it.
    tagged = [m for m in index["manifests"] if m.get("annotations", {}).get(_REF_NAME) == name]
    tagged[0]["annotations"] = {"io.containerd.image.name": image}
    has = set(ctr("content", "list", "--quiet").split())
    with tempfile.TemporaryDirectory(dir=DATA) as made:
        archive = Path(made, "image.tar")
        with tarfile.open(archive, "w") as tar:
            for wanted in ("oci-layout", *_blobs(folder, tagged[0]["digest"], has)):
                tar.add(folder / wanted, arcname=wanted)
            _add(tar, "index.json", json.dumps({**index, "manifests": tagged}).encode())
        load(archive)


def _blobs(folder: Path, manifest: str, has: set[str]) -> list[str]:
    """Files of an image's manifest, its config and the layers that are not there yet."""
    path = "blobs/" + manifest.replace(":", "/")
    listed = json.loads((folder / path).read_text())
    layers = [layer["digest"] for layer in listed["layers"] if layer["digest"] not in has]
    return [path, *("blobs/" + digest.replace(":", "/") for digest in (listed["config"]["digest"], *layers))]


def program_image(name: str, program: Path, archive: Path) -> Path:
    """An image of one static program, as `docker save` would write it."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(program, arcname=program.name, filter=_plain)
    data = layer.getvalue()
    config = {
        "architecture": "amd64" if _is_amd64() else "arm64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{program.name}"], "User": USER, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        for entry, content in (
            ("layer.tar", data),
            ("config.json", json.dumps(config).encode()),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            _add(tar, entry, content)
    return archive


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def identity(tool: str, image: str) -> str:
    """The id of an image that a builder holds. Raises CalledProcessError if there is none."""
    command = {
        "docker": ["docker", "image", "inspect", "--format", "{{.Id}}", image],
        "podman": ["podman", "image", "inspect", "--format", "{{.Id}}", image],
        "buildah": ["buildah", "inspect", "--type", "image", "--format", "{{.FromImageID}}", image],
    }[tool]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def export(tool: str, image: str, archive: Path) -> Path:
    """Write an image that docker, podman or buildah holds as an archive."""
    command = {
        "docker": ["docker", "save", "--output", str(archive), image],
        "podman": ["podman", "save", "--output", str(archive), image],
        "buildah": ["buildah", "push", "--quiet", image, f"docker-archive:{archive}:{image}"],
    }[tool]
    subprocess.run(command, check=True)
    return archive


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o755
    return info


def _is_amd64() -> bool:
    import platform

    return platform.machine() in ("x86_64", "AMD64")
