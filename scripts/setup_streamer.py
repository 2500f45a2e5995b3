"""Makes .venv-streamer and .cache/streamer: Hudi Streamer of Apache Hudi 0.14.0 on Spark 3.4, for
the long tests; instant when done. Run it by the Python of `make setup`.

    python -m scripts.setup_streamer

Maven Central has Hudi's bundles for Spark and the bare jar of its utilities; bundles of the
utilities were not to be had. The bundle for Spark keeps some libraries under names of its own. The
same renaming, done to the jar of the utilities, lets it run beside that bundle.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.setup_env import BUILD_LOCK, ROOT, digest, make_environment, pinned_jars, refuse_wrong, resolve, wrong_jars

LOCK = ROOT / "requirements" / "streamer.txt"
PINS = ROOT / "requirements" / "streamer.sha256"
VENV = ROOT / ".venv-streamer"
FOLDER = ROOT / ".cache" / "streamer"
PACKAGES = (
    "org.apache.hudi:hudi-spark3.4-bundle_2.12:0.14.0,org.apache.spark:spark-streaming-kafka-0-10_2.12:3.4.1,"
    "com.twitter:bijection-avro_2.12:0.9.7,com.eed3si9n.jarjar:jarjar-assembly:1.8.1"
)
ALONE = "org.apache.hudi:hudi-utilities_2.12:0.14.0"
"""Fetched without what it names: its own bundle for Spark has that."""
RULES = """\
rule com.beust.jcommander.** org.apache.hudi.com.beust.jcommander.@1
rule com.codahale.metrics.** org.apache.hudi.com.codahale.metrics.@1
rule org.apache.commons.codec.** org.apache.hudi.org.apache.commons.codec.@1
rule org.apache.commons.io.** org.apache.hudi.org.apache.commons.io.@1
rule org.apache.hadoop.hbase.** org.apache.hudi.org.apache.hadoop.hbase.@1
rule org.apache.http.** org.apache.hudi.org.apache.http.@1
rule org.apache.spark.sql.avro.** org.apache.hudi.org.apache.spark.sql.avro.@1
rule org.eclipse.jetty.** org.apache.hudi.org.apache.jetty.@1
rule org.openjdk.jol.** org.apache.hudi.org.openjdk.jol.@1
"""
"""How the bundle renames."""
UTILITIES = FOLDER / "hudi-utilities-renamed.jar"


def jars() -> list[Path]:
    """What a session of Spark 3.4 needs beside itself."""
    tools = ("jarjar", "hudi-utilities")
    return [
        UTILITIES,
        *(FOLDER / "jars" / name for name in pinned_jars(PINS) if not any(tool in name for tool in tools)),
    ]


def _utilities() -> None:
    """The jar of the utilities by Maven, renamed."""
    _, name, version = ALONE.split(":")
    command = ["mvn", "-q", "dependency:copy", f"-Dartifact={ALONE}", f"-DoutputDirectory={FOLDER / 'jars'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"Maven did not fetch {ALONE}: {done.stdout}{done.stderr}")
    refuse_wrong(PINS, FOLDER, "setup-streamer")
    rules = FOLDER / "rules.txt"
    rules.write_text(RULES)
    home = subprocess.run([ROOT / "scripts" / "ensure-java"], stdout=subprocess.PIPE, text=True, check=True).stdout
    (tool,) = (FOLDER / "jars").glob("*jarjar-assembly*.jar")
    java = Path(home.strip()) / "bin" / "java"
    subprocess.run(
        [java, "-jar", tool, "process", rules, FOLDER / "jars" / f"{name}-{version}.jar", UTILITIES], check=True
    )


def main() -> None:
    stamp, wanted = VENV / ".made-from", digest([BUILD_LOCK, LOCK, PINS, Path(__file__)])
    if stamp.exists() and stamp.read_text() == wanted and UTILITIES.exists():
        return
    make_environment(VENV, LOCK)
    if wrong_jars(PINS, FOLDER):
        print(f"Fetching {PACKAGES} and {ALONE}", flush=True)
        resolve(VENV, PACKAGES, FOLDER)
    _utilities()
    stamp.write_text(wanted)
    print(f"{VENV.relative_to(ROOT)} is ready.")


if __name__ == "__main__":
    main()
