"""A RabbitMQ broker of the tests' own, on loopback, gone with them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pika

WAIT_SECONDS = 180


@dataclass
class RabbitMqBroker:
    """A broker that runs."""

    url: str

    def connect(self) -> closing:
        return closing(pika.BlockingConnection(pika.URLParameters(self.url)))

    def declare_quorum_queue(self, name: str) -> None:
        with self.connect() as connection:
            connection.channel().queue_declare(
                name, durable=True, arguments={"x-queue-type": "quorum"}
            )

    def publish(self, queue: str, body: bytes, **properties: object) -> None:
        """Publish a message and wait until the broker has it."""
        with self.connect() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", queue, body, pika.BasicProperties(**properties))

    def ready(self, queue: str) -> int:
        """How many messages wait to be delivered."""
        with self.connect() as connection:
            found = connection.channel().queue_declare(queue, passive=True)
            return found.method.message_count


def find_server() -> Path | None:
    """The broker's program, None where it is not installed."""
    found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))
    on_path = shutil.which("rabbitmq-server")
    return found[-1] if found else Path(on_path) if on_path else None


@contextmanager
def running_rabbitmq(program: Path, folder: Path) -> Iterator[RabbitMqBroker]:
    """Start a broker in a folder that does not exist yet."""
    folder.mkdir()
    amqp, distribution, names = (str(port) for port in _free_ports(3))
    (folder / "enabled_plugins").write_text("[].")
    (folder / "rabbitmq.conf").write_text("loopback_users = none\n")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"tests{amqp}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": amqp,
        "RABBITMQ_DIST_PORT": distribution,
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "ERL_EPMD_PORT": names,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    with (folder / "output").open("w") as output:
        server = subprocess.Popen(
            [program], env=environment, stdout=output, stderr=output, start_new_session=True
        )
    broker = RabbitMqBroker(f"amqp://guest:guest@127.0.0.1:{amqp}")
    try:
        _wait_for(broker, server, folder / "output")
        yield broker
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        _end_name_server(environment)


def _end_name_server(environment: dict[str, str]) -> None:
    """End what outlives the broker; it refuses until it has noticed that the broker is gone."""
    for _ in range(50):
        ended = subprocess.run(["epmd", "-kill"], env=environment, check=False, capture_output=True)
        if ended.returncode == 0 and b"not allowed" not in ended.stdout:
            return
        time.sleep(0.2)


def _wait_for(broker: RabbitMqBroker, server: subprocess.Popen, output: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            with broker.connect():
                return
        except pika.exceptions.AMQPError:
            assert server.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.2)


def _free_ports(number: int) -> list[int]:
    probes = [socket.socket() for _ in range(number)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
