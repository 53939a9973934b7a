"""A Kafka broker of the tests' own, on loopback: one node, which is its own controller."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyspark
from thrift_servers import free_port

PACKAGES = "org.apache.kafka:kafka_2.13:4.0.0"
# any will do
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
WAIT_SECONDS = 120
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "log.cleaner.backoff.ms": 100,
}


@dataclass
class KafkaBroker:
    """A broker that runs."""

    brokers: str
    process: subprocess.Popen[bytes]

    def make_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Make a topic; settings: with underscores for the dots of their names."""
        from confluent_kafka.admin import NewTopic

        config = {key.replace("_", "."): value for key, value in settings.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        self.admin.create_topics([topic])[name].result(timeout=60)

    def publish(self, topic: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Publish records (value, key, headers, partition, timestamp) and wait for all of them."""
        from confluent_kafka import Producer

        failed: list[Any] = []
        producer = Producer({"bootstrap.servers": self.brokers})
        for record in records:
            producer.produce(
                topic, on_delivery=lambda error, _: error and failed.append(error), **record
            )
        assert producer.flush(60) == 0
        assert not failed

    def delete_before(self, topic: str, offset: int) -> None:
        """Delete the records of partition 0 before an offset, as retention does."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(topic, 0, offset)
        self.admin.delete_records([place])[place].result(timeout=60)

    def committed(self, topic: str, group: str, partitions: int = 1) -> list[int]:
        """The offsets at which a group will go on, by partition; -1001 where it has none."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [TopicPartition(topic, number) for number in range(partitions)]
        asked = ConsumerGroupTopicPartitions(group, places)
        answer = self.admin.list_consumer_group_offsets([asked])[group].result(timeout=60)
        return [place.offset for place in answer.topic_partitions]

    def offsets(self, topic: str) -> list[int]:
        """The offsets of the records that partition 0 holds."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.brokers, "group.id": "look", "enable.partition.eof": True}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[int] = []
        while (message := consumer.poll(WAIT_SECONDS)) is not None and message.error() is None:
            found.append(message.offset())
        assert message is not None
        assert message.error().code() == KafkaError._PARTITION_EOF
        consumer.close()
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @cached_property
    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.brokers, "log_level": 0})


@contextmanager
def running_kafka(jars: list[str], folder: Path) -> Iterator[KafkaBroker]:
    """Start a broker that keeps its records in a folder."""
    port, controller = free_port(), free_port()
    address = f"127.0.0.1:{port}"
    settings = {
        **SETTINGS,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}",
        "log.dirs": folder / "records",
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = [_java(), "-Xmx512m", "-XX:+UseSerialGC", "-cp", ":".join([*jars, _scala()])]
    with (folder / "output").open("wb") as output:
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", file],
            stdout=output,
            stderr=output,
            check=True,
        )
        process = subprocess.Popen([*java, "kafka.Kafka", file], stdout=output, stderr=output)
    broker = KafkaBroker(address, process)
    try:
        _wait_for(broker, folder / "output")
        yield broker
    finally:
        broker.kill()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java") or "java"


def _scala() -> str:
    """Spark's own; it leaves that of the packages out."""
    jars = Path(pyspark.__file__).parent / "jars"
    return str(next(jars.glob("scala-library-*.jar")))


def _wait_for(broker: KafkaBroker, output: Path) -> None:
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            broker.admin.list_topics(timeout=1)
            return
        except KafkaException:
            assert broker.process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
