"""Writes the bill of materials of an image: CycloneDX JSON, of what the image really holds.

    python scripts/sbom.py IMAGE FILE

Listed are Debian's packages, Python distributions, and the jars with their SHA-256. No one tool
from PyPI knows all three, so they are read here from the layers, and the CycloneDX project's own
library makes the document and checks it against the schema. Runs in .venv-sbom, see
requirements/sbom.in.
"""

from __future__ import annotations

import email
import hashlib
import io
import json
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

DPKG = "var/lib/dpkg/status"
METADATA = re.compile(r"opt/hudi/lib/python3\.\d+/site-packages/[^/]+\.dist-info/METADATA")
JAR = re.compile(r"opt/hudi/lib/.*\.jar|usr/share/java/.*\.jar")


def layers(archive: Path) -> Iterator[tarfile.TarFile]:
    """The layers of a saved image, the lowest first."""
    with tarfile.open(archive) as image:
        listed = image.extractfile("manifest.json")
        assert listed is not None
        for name in json.load(listed)[0]["Layers"]:
            layer = image.extractfile(name)
            assert layer is not None
            with tarfile.open(fileobj=layer) as found:
                yield found


def files(archive: Path) -> dict[str, bytes]:
    """What tells of components, as the topmost layer has it."""
    contents: dict[str, bytes] = {}
    for layer in layers(archive):
        for entry in layer:
            name = entry.name.removeprefix("./")
            folder, _, base = name.rpartition("/")
            if base.startswith(".wh."):
                gone = f"{folder}/{base.removeprefix('.wh.')}"
                contents = {
                    path: data for path, data in contents.items() if path != gone and not path.startswith(f"{gone}/")
                }
            elif entry.isfile() and (name == DPKG or METADATA.fullmatch(name) or JAR.fullmatch(name)):
                content = layer.extractfile(entry)
                assert content is not None
                contents[name] = content.read()
    return contents


def debian(status: str) -> Iterator[Component]:
    """Packages that dpkg says are installed."""
    for block in status.split("\n\n"):
        fields = email.message_from_string(block)
        if fields["Package"] and fields["Status"] == "install ok installed":
            where = {"arch": fields["Architecture"], "distro": "debian-12"}
            url = PackageURL("deb", "debian", fields["Package"], fields["Version"], where)
            yield component(fields["Package"], fields["Version"], url)


def python(metadata: bytes) -> Component:
    """A distribution that pip has installed."""
    fields = email.message_from_bytes(metadata)
    name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
    return component(name, fields["Version"], PackageURL("pypi", None, name, fields["Version"]))


def jar(path: str, data: bytes) -> Component:
    """A jar: by what Maven wrote into it, if that is about this jar alone, else by its name."""
    stem = path.rpartition("/")[2].removesuffix(".jar")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.endswith("/pom.properties")]
        pom = dict(
            line.split("=", 1) for line in archive.read(names[0]).decode().splitlines() if "=" in line and line[0] != "#"
        ) if len(names) == 1 else {}  # fmt: skip
    split = re.fullmatch(r"(.+?)-(\d.*)", stem)
    name, version = (split[1], split[2]) if split else (stem, "")
    name, version = pom.get("artifactId", name), pom.get("version", version)
    url = PackageURL("maven", pom.get("groupId"), name, version or None)
    digest = HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(data).hexdigest())
    return component(name, version, url, [digest], f"{url}#{path}")


def component(
    name: str, version: str, url: PackageURL, hashes: list[HashType] | None = None, reference: str | None = None
) -> Component:
    """One part of the image."""
    return Component(
        type=ComponentType.LIBRARY, name=name, version=version, purl=url, hashes=hashes, bom_ref=reference or str(url)
    )


def bill(image: str, archive: Path) -> Bom:
    """The whole document. Raises AssertionError where an image tells nothing of itself."""
    found = files(archive)
    assert DPKG in found, f"{image} holds no list of Debian's packages"
    made = Bom()
    name, _, version = image.rpartition(":")
    made.metadata.component = Component(type=ComponentType.CONTAINER, name=name, version=version, bom_ref=image)
    made.components.update(debian(found[DPKG].decode()))
    for path, data in sorted(found.items()):
        if path.endswith("METADATA"):
            made.components.add(python(data))
        elif path.endswith(".jar"):
            made.components.add(jar(path, data))
    made.register_dependency(made.metadata.component, made.components)
    return made


def main() -> None:
    """Write the bill of one image."""
    from e2e.cluster.images import export
    from scripts.build_images import find_tool

    image, target = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        text = JsonV1Dot6(bill(image, export(find_tool(), image, Path(folder, "image.tar")))).output_as_string(indent=2)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        sys.exit(f"the bill of {image} is not CycloneDX 1.6: {wrong}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    print(f"{target}: {len(json.loads(text)['components'])} components")


if __name__ == "__main__":
    main()
