"""Apache Hudi on Spark 3.5 behind JSON lines: one command a line on stdin, one answer a line on
stdout.

Runs inside the environment of `make interop-env` (pyspark 3.5), never inside the project's own;
`hudi_oracle.py` is the client, which starts it in a scratch folder. Rows cross as Parquet files, so
that types stay exact. Commands and their fields:

    read   base, options, to, where?       the table's rows as Parquet files in the folder `to`
    write  base, rows, options             the rows of the Parquet file `rows`, appended with the DataFrame writer
    sql    statement, to?                  a statement; its rows, if `to` is given
    hfile  path, keys                      all keys of an HFile, the values of `keys` in hexadecimal, and how many entries HBase's reader finds
    lock   provider, properties, rounds, critical   takes and gives back a lock that often, inside the file `critical` is made exclusively
    lose_lock   provider, properties                tries once to take a lock, and closes its client
    lock_bytes                                      what Hudi writes into the files of its locks
    checkpoint base, source, text, reset, ignored   what 1.x reads of the newest commit as Hudi Streamer's checkpoint, and what it records of one
    stop

An answer is {"ok": true, ...} or {"ok": false, "error": class, "message": text}.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

BUNDLE = "hudi-spark3.5-bundle_2.12"


def session(version: str, ivy: str, more: dict[str, str] | None = None, beside: str = "") -> SparkSession:
    """A small local session with the Hudi bundle `version` and no other on its class path. `more`:
    further settings of it; `beside`: further jars, by a folder."""
    jars = Path(ivy) / "jars"
    bundle = jars / f"org.apache.hudi_{BUNDLE}-{version}.jar"
    scratch = os.getcwd()
    builder = SparkSession.builder.master("local[1]").appName(f"hudi-oracle-{version}")
    settings = {
        "spark.driver.memory": "1g",
        # Short jobs: the second compiler costs more processor time than it saves. What the first one makes of Spark and Hudi fills the 48 MiB that it
        # has alone, and is then thrown away and made again; a small young generation and metaspace are collected hundreds of times (measured:
        # together a fifth of a session's processor time). Hudi's bloom index sends its file system view
        # to tasks where it reads the metadata table; the locks inside can be written only if Java 17 opens their package, which Spark does not ask for.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC"
        " -Xms768m -Xmn448m -XX:MetaspaceSize=256m -Duser.timezone=UTC"
        " --add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
    }
    if bundle.is_file():
        others = [str(jar) for jar in sorted(jars.glob("*.jar")) if BUNDLE not in jar.name]
        others += sorted(map(str, Path(beside).glob("*.jar"))) if beside else []
        settings["spark.driver.extraClassPath"] = ":".join([str(bundle), *others])
    else:
        settings["spark.jars.packages"] = f"org.apache.hudi:{BUNDLE}:{version}"
        settings["spark.jars.ivy"] = ivy
    for key, value in (settings | (more or {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def read(spark: SparkSession, command: dict[str, Any]) -> dict[str, Any]:
    """The rows of a Hudi table."""
    frame = spark.read.format("hudi").options(**command.get("options", {})).load(command["base"])
    if command.get("where"):
        frame = frame.where(command["where"])
    frame.coalesce(1).write.parquet(command["to"])
    return {"types": frame.dtypes}


def write(spark: SparkSession, command: dict[str, Any]) -> dict[str, Any]:
    """One write of the DataFrame writer; the operation is among the options."""
    frame = spark.read.parquet(command["rows"])
    frame.write.format("hudi").options(**command["options"]).mode(command.get("mode", "append")).save(command["base"])
    return {}


def sql(spark: SparkSession, command: dict[str, Any]) -> dict[str, Any]:
    """One SQL statement."""
    frame = spark.sql(command["statement"])
    if command.get("to"):
        frame.coalesce(1).write.parquet(command["to"])
    return {"types": frame.dtypes}


def hfile(spark: SparkSession, command: dict[str, Any]) -> dict[str, Any]:
    """An HFile through Hudi's own reader, and where the bundle has it through HBase's."""
    jvm: Any = spark._jvm
    hudi, path = jvm.org.apache.hudi, command["path"]
    reader = _native_reader(hudi, path)
    found = []
    going = reader.getNumKeyValueEntries() > 0 and reader.seekTo()
    while going:
        found.append(reader.getKeyValue().get().getKey().getContentInString())
        going = reader.next()
    values = {}
    reader = _native_reader(hudi, path)
    reader.initializeMetadata()
    reader.seekTo()
    for key in sorted(command["keys"], key=str.encode):
        if reader.seekTo(hudi.io.hfile.UTF8StringKey(key)) == 0:
            entry = reader.getKeyValue().get()
            start = entry.getValueOffset()
            values[key] = bytes(entry.getBytes())[start : start + entry.getValueLength()].hex()
    return {"found": found, "values": values, "hbase": _entries_of_hbase(spark, path)}


def _native_reader(hudi: Any, path: str) -> Any:
    data = Path(path).read_bytes()
    stream = hudi.io.ByteArraySeekableDataInputStream(hudi.common.util.io.ByteBufferBackedInputStream(data))
    reader = hudi.io.hfile.HFileReaderImpl(stream, len(data))
    reader.initializeMetadata()
    return reader


def _entries_of_hbase(spark: SparkSession, path: str) -> int | None:
    """None where the bundle has no HBase."""
    jvm: Any = spark._jvm
    classes = jvm.org.apache.hudi.org.apache.hadoop.hbase.io.hfile
    if not isinstance(classes.HFile, JavaClass):
        return None
    conf = spark._jsc.hadoopConfiguration()
    where = jvm.org.apache.hadoop.fs.Path(path)
    scanner = classes.HFile.createReader(where.getFileSystem(conf), where, conf).getScanner(False, False)
    count, going = 0, scanner.seekTo()
    while going:
        count, going = count + 1, scanner.next()
    return count


def lock(spark: SparkSession, command: dict[str, Any]) -> dict[str, Any]:
    """Rounds of a lock provider; `met`: how often somebody else was inside."""
    provider = _lock_provider(spark, command)
    unit = spark._jvm.java.util.concurrent.TimeUnit.MILLISECONDS  # type: ignore[union-attr]
    met = 0
    for _ in range(command["rounds"]):
        while not _tried(provider, unit):
            time.sleep(0.002)
        try:
            os.close(os.open(command["critical"], os.O_CREAT | os.O_EXCL))
            time.sleep(0.001)
            os.unlink(command["critical"])
        except FileExistsError:
            met += 1
        provider.unlock()
    return {"met": met}


def lose_lock(spark: SparkSession, command: dict[str, Any]) -> dict[str, Any]:
    """One try, and the end of the client."""
    provider = _lock_provider(spark, command)
    got = _tried(provider, spark._jvm.java.util.concurrent.TimeUnit.MILLISECONDS)  # type: ignore[union-attr]
    provider.close()
    return {"got": got}


def _lock_provider(spark: SparkSession, command: dict[str, Any]) -> Any:
    jvm: Any = spark._jvm
    hudi = jvm.org.apache.hudi
    properties = hudi.common.config.TypedProperties()
    for name, value in command["properties"].items():
        properties.setProperty(name, value)
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())
    made = getattr(hudi.client.transaction.lock, command["provider"])
    return made(hudi.common.config.LockConfiguration(properties), conf)


def _tried(provider: Any, unit: Any) -> bool:
    """Whether it was got; ZooKeeper's provider raises where the others say no."""
    try:
        return bool(provider.tryLock(10_000, unit))
    except Py4JJavaError as error:
        if "FAILED_TO_ACQUIRE" not in str(error):
            raise
        return False


def lock_bytes(spark: SparkSession, _: dict[str, Any]) -> dict[str, Any]:
    """The content of the lock file; and, where the bundle has it, of the lock object."""
    jvm: Any = spark._jvm
    locks = jvm.org.apache.hudi.client.transaction.lock
    info = locks.LockInfo()
    info.setLockCreateTime("2026-01-02 03:04:05.678")
    info.setLockThreadName("main")
    info.setLockStacksInfo(spark.sparkContext._gateway.new_array(jvm.java.lang.StackTraceElement, 0))  # type: ignore[union-attr]
    answer = {"file": info.toString()}
    if isinstance(locks.models.StorageLockData, JavaClass):
        data = locks.models.StorageLockData(False, 1_700_000_000_123, "an owner")
        answer["object"] = bytes(locks.models.StorageLockFile.toByteArray(data)).decode()
    return answer


def checkpoint(spark: SparkSession, command: dict[str, Any]) -> dict[str, Any]:
    """`read`: by the class that the bundle shares with Hudi Streamer; `written`: the extra metadata
    of a commit of a job whose source is of class `source`."""
    jvm: Any = spark._jvm
    table = jvm.org.apache.hudi.common.table
    conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())
    client = table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(command["base"]).build()
    timeline = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
    found = table.checkpoint.CheckpointUtils.getCheckpoint(timeline.readCommitMetadata(timeline.lastInstant().get()))
    version = client.getTableConfig().getTableVersion().versionCode()
    made = table.checkpoint.CheckpointUtils.buildCheckpointFromGeneralSource(
        command["source"], version, command["text"]
    )
    return {
        "read": [found.getCheckpointKey(), found.getCheckpointResetKey(), found.getCheckpointIgnoreKey()],
        "written": dict(made.getCheckpointCommitMetadata(command["reset"], command["ignored"])),
    }


COMMANDS = {
    "read": read,
    "write": write,
    "sql": sql,
    "hfile": hfile,
    "lock": lock,
    "lose_lock": lose_lock,
    "lock_bytes": lock_bytes,
    "checkpoint": checkpoint,
}


def main() -> None:
    """Serve until `stop` or the end of stdin."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--ivy", required=True)
    parser.add_argument("--settings", type=json.loads, default={}, help="further settings of the session, as JSON")
    parser.add_argument("--beside", default="", help="a folder of further jars")
    arguments = parser.parse_args()
    # Java and Python both print to descriptor 1: keep the answers apart from their chatter.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    spark = session(arguments.version, arguments.ivy, arguments.settings, arguments.beside)
    print(json.dumps({"ok": True, "version": arguments.version}), file=answers)
    for line in sys.stdin:
        command = json.loads(line)
        # Reads of merge-on-read tables switch it off for the session, and what later reads can do would depend on them.
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", "true")
        if command["command"] == "stop":
            break
        try:
            answer = {"ok": True} | COMMANDS[command["command"]](spark, command)
        except Exception as error:  # noqa: BLE001 - the rim of the process: the client raises it again
            answer = {"ok": False, "error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), file=answers)
    spark.stop()


if __name__ == "__main__":
    main()
