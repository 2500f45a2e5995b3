"""A Kafka broker on this machine, in KRaft mode, one node: started, killed, started again, on
loopback.

Its jars are pinned in requirements/kafka.sha256 and fetched by `make setup-kafka`; Scala's library
is that of pyspark. A second listener asks for TLS and a password (SASL PLAIN, or SCRAM), a third
for a password alone (SCRAM), a fourth for a certificate of the client. Topics have few partitions,
and what a cluster does to survive machines is off.
"""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.https import HOST, certificate_of
from tests.support.server_process import ServerProcess, free_ports

ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / ".cache" / "kafka" / "jars"
USER, PASSWORD = "hudi", "se-cret-of-the-broker"
GUEST, GUEST_PASSWORD = "guest", "another-se-cret"
"""Of a guarded broker: one who may do what it is allowed to. All others may do everything."""
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAIN://127.0.0.1:{plain},SECURE://127.0.0.1:{secure},SCRAM://127.0.0.1:{scram},MUTUAL://127.0.0.1:{mutual},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAIN://127.0.0.1:{plain},SECURE://127.0.0.1:{secure},SCRAM://127.0.0.1:{scram},MUTUAL://127.0.0.1:{mutual}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAIN
listener.security.protocol.map=PLAIN:PLAINTEXT,SECURE:SASL_SSL,SCRAM:SASL_PLAINTEXT,MUTUAL:SSL,CONTROLLER:PLAINTEXT
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}" user_{guest}="{guest_password}";
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location={folder}/keystore.pem
listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.scram.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.mutual.ssl.client.auth=required
listener.name.mutual.ssl.keystore.type=PEM
listener.name.mutual.ssl.keystore.location={folder}/keystore.pem
listener.name.mutual.ssl.truststore.type=PEM
listener.name.mutual.ssl.truststore.location={folder}/clients.pem
log.dirs={folder}/data
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=500
log.cleaner.backoff.ms=500
log.initial.task.delay.ms=500
log.segment.delete.delay.ms=100
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=300
"""
_GUARDED = f"""
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{USER}
"""


@dataclass
class Broker:
    """One broker with a folder of its own. `guarded`: it asks who may do what."""

    folder: Path
    plain: int
    secure: int
    scram: int
    mutual: int
    controller: int
    guarded: bool = False
    certificate: bytes = b""
    client_certificate: bytes = b""
    client_key: bytes = field(default=b"", repr=False)
    password: str = PASSWORD
    _process: ServerProcess = field(init=False, repr=False)
    _admin: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._process = ServerProcess("Kafka", self.folder / "log")

    @property
    def address(self) -> str:
        """Where clients without a password go."""
        return f"{HOST}:{self.plain}"

    @property
    def secure_address(self) -> str:
        """Where TLS and a password are asked for."""
        return f"{HOST}:{self.secure}"

    @property
    def scram_address(self) -> str:
        """Where a password is asked for, without TLS."""
        return f"{HOST}:{self.scram}"

    @property
    def mutual_address(self) -> str:
        """Where TLS and a certificate of the client are asked for."""
        return f"{HOST}:{self.mutual}"

    def make(self) -> None:
        """The broker's files."""
        pem, self.certificate = _pair()
        (self.folder / "keystore.pem").write_bytes(pem + self.certificate)
        self.client_key, self.client_certificate = _pair()
        (self.folder / "clients.pem").write_bytes(self.client_certificate)
        self._configure()
        # The tool takes one that begins with a dash for an option.
        number = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().strip("=")[1:]
        arguments = ["kafka.tools.StorageTool", "format", "-t", number, "-c", str(self.folder / "server.properties")]
        done = subprocess.run(
            [*java_of(_class_path()), *arguments], capture_output=True, text=True, check=False, cwd=self.folder
        )
        if done.returncode:
            raise RuntimeError(f"Kafka's storage was not formatted: {done.stdout}{done.stderr}")

    def _configure(self) -> None:
        settings = _SETTINGS.format(
            plain=self.plain, secure=self.secure, scram=self.scram, mutual=self.mutual,
            controller=self.controller, folder=self.folder,
            user=USER, password=self.password, guest=GUEST, guest_password=GUEST_PASSWORD,
        )  # fmt: skip
        (self.folder / "server.properties").write_text(settings + (_GUARDED if self.guarded else ""))

    def rotate(self, password: str) -> None:
        """Give the user another password; connections that were made with the one before end."""
        self.kill()
        self.password = password
        self._configure()
        self.start()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        command = [*java_of(_class_path()), "kafka.Kafka", str(self.folder / "server.properties")]
        self._process.start(command, lambda log: b"Kafka Server started" in log, cwd=self.folder)

    def sleep(self) -> None:
        """Let it answer nothing more, and keep its connections, until it is killed."""
        self._process.stop_when(lambda: True)

    def kill(self) -> None:
        """End it at once, as a machine that goes away does."""
        self._process.kill()

    @property
    def admin(self) -> Any:
        """A client that makes and deletes topics."""
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.address})
        return self._admin

    def topic(self, name: str | None = None, partitions: int = 2, **config: str) -> str:
        """A new topic; its name."""
        import confluent_kafka.admin as admin

        name = name or f"t-{uuid.uuid4().hex[:12]}"
        made = self.admin.create_topics([admin.NewTopic(name, partitions, 1, config=config)])  # type: ignore[attr-defined]
        made[name].result(30)
        return name

    def configure(self, topic: str, **config: str) -> None:
        """Change settings of a topic; the others stay."""
        import confluent_kafka.admin as admin

        change = admin.AlterConfigOpType.SET  # type: ignore[attr-defined]
        entries = [admin.ConfigEntry(name, value, incremental_operation=change) for name, value in config.items()]  # type: ignore[attr-defined]
        wanted = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic, incremental_configs=entries)  # type: ignore[attr-defined]
        self.admin.incremental_alter_configs([wanted])[wanted].result(30)

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(30)
        until = time.monotonic() + 30
        while topic in self.admin.list_topics(timeout=10).topics and time.monotonic() < until:
            time.sleep(0.05)

    def add_partitions(self, topic: str, total: int) -> None:
        """Make a topic have so many."""
        import confluent_kafka.admin as admin

        wanted = admin.NewPartitions(topic, total)  # type: ignore[attr-defined]
        self.admin.create_partitions([wanted])[topic].result(30)

    def allow_scram(self) -> None:
        """Give the user the password by SCRAM-SHA-512, too."""
        import confluent_kafka.admin as admin

        made = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_512, 4096)  # type: ignore[attr-defined]
        wanted = admin.UserScramCredentialUpsertion(USER, made, self.password.encode())  # type: ignore[attr-defined]
        for future in self.admin.alter_user_scram_credentials([wanted]).values():
            future.result(30)

    def allow_reading(self, topic: str) -> None:
        """Let the guest read a topic and say what it holds, but not how it is configured."""
        import confluent_kafka.admin as admin

        kinds, can = admin.ResourceType, admin.AclOperation  # type: ignore[attr-defined]
        literal, allow = admin.ResourcePatternType.LITERAL, admin.AclPermissionType.ALLOW  # type: ignore[attr-defined]
        allowed = [
            (kinds.TOPIC, topic, can.READ),
            (kinds.TOPIC, topic, can.DESCRIBE),
            (kinds.GROUP, "hudi-table", can.READ),
            (kinds.BROKER, "kafka-cluster", can.DESCRIBE),
        ]
        made = self.admin.create_acls(
            [admin.AclBinding(kind, name, literal, f"User:{GUEST}", "*", what, allow) for kind, name, what in allowed]  # type: ignore[attr-defined]
        )
        for future in made.values():
            future.result(30)

    def forget(self, topic: str, partition: int, before: int) -> None:
        """Delete what lies before an offset, as retention does."""
        import confluent_kafka as kafka

        place = kafka.TopicPartition(topic, partition, before)
        for future in self.admin.delete_records([place]).values():
            future.result(30)

    def producer(self, **config: Any) -> Any:
        """A producer."""
        import confluent_kafka as kafka

        return kafka.Producer({"bootstrap.servers": self.address, "linger.ms": 5, **config})

    def produce(
        self,
        topic: str,
        messages: Sequence[bytes | tuple[Any, bytes | None] | None],
        partition: int | None = None,
        headers: Any = None,
    ) -> None:
        """Send values, or (key, value) pairs; round the partitions by key, or to one."""
        producer = self.producer()
        more: Mapping[str, Any] = {} if partition is None else {"partition": partition}
        for message in messages:
            key, value = message if isinstance(message, tuple) else (None, message)
            while True:
                try:
                    producer.produce(topic, value, key, headers=headers, **more)
                    break
                except BufferError:
                    producer.poll(0.1)
        left = producer.flush(60)
        assert left == 0, f"{left} messages were not sent"


@contextlib.contextmanager
def running_broker(*, guarded: bool = False) -> Iterator[Broker]:
    """A broker, gone at the end."""
    if not JARS.is_dir():
        pytest.fail("Kafka's jars are not there: make setup-kafka")
    with tempfile.TemporaryDirectory(prefix="kafka-") as folder:
        plain, secure, scram, mutual, controller = free_ports(5)
        broker = Broker(Path(folder), plain, secure, scram, mutual, controller, guarded)
        broker.make()
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()


def _pair() -> tuple[bytes, bytes]:
    """A key, and a certificate of its own."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem, certificate_of(key)


def _class_path() -> str:
    scala = Path(pyspark.__file__).parent / "jars" / "scala-library-*.jar"
    (library,) = scala.parent.glob(scala.name)
    return f"{JARS}/*{os.pathsep}{library}"


def java_of(class_path: str) -> list[str]:
    """The command of a server that starts fast and stays small."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx384m"]
    return [java, *options, "-cp", class_path]
