"""Error documents reach the queue that their publisher has named, at least once, and say so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from artemis import ArtemisBroker
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession
from rabbitmq import RabbitMqBroker

from dbt_exactly_once.cli import main
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.amqp import AmqpPublisher
from dbt_exactly_once.landing.brokers import UndeliverableError
from dbt_exactly_once.landing.rabbitmq import RabbitMqPublisher

THEN = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(hours=3)
VIEWS = ["execution_state", "dispatched_documents", "error_documents"]
NOBODY = "amqp://guest:secret@127.0.0.1:1"
# ends the process at once when the broker has confirmed and nothing is recorded
KILLED_BEFORE_RECORD = """
import os, signal, sys
from pyspark.sql.readwriter import DataFrameWriterV2
from dbt_exactly_once import cli
DataFrameWriterV2.append = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
cli.main(sys.argv[1:])
"""


def failed(name: str, errors_to: str | None) -> dict[str, Any]:
    return {
        "delivery_id": name,
        "received_at": THEN - timedelta(minutes=5),
        "landed_at": THEN,
        "transport": "RABBITMQ",
        "document_type": "order",
        "guaranteed": True,
        "uuid": name,
        "errors_to": errors_to,
        "document": f'{{"order": "{name} ü"}}',
    }


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.seed(
        "triggers",
        [
            {
                "trigger_name": "orders",
                "processing_mode": "concurrent",
                "detect_duplicates": True,
                "use_history": True,
            }
        ],
    )
    found.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": "orders",
                "position": 1,
                "condition_name": "any",
                "document_type": "order",
                "service": "book",
            }
        ],
    )
    found.add_udfs("book", "from python_udfs import service\nservice('book')(lambda work: None)\n")
    found.run("seed")
    return found


def fail(runs: DbtRuns, *deliveries: dict[str, Any]) -> None:
    """Land deliveries whose service has ended in error, and publish that."""
    runs.land("deliveries", deliveries)
    runs.land(
        "trigger_executions",
        [
            {
                "execution_id": f"{row['delivery_id']}-ended",
                "delivery_id": row["delivery_id"],
                "trigger_name": "orders",
                "service": "book",
                "attempt": 1,
                "event": "ERROR",
                "started_at": THEN,
                "ended_at": THEN,
                "message": "KeyError: 'total'",
                "recorded_at": THEN,
            }
            for row in deliveries
        ],
    )
    runs.run("run", "--select", "tag:transaction", clock=THEN + timedelta(minutes=1))


def taken(broker: RabbitMqBroker, queue: str) -> list[tuple[Any, bytes]]:
    """The messages of a queue, with their properties; they stay in it."""
    found = []
    with broker.connect() as connection:
        channel = connection.channel()
        while True:
            method, properties, body = channel.basic_get(queue)
            if method is None:
                return found
            found.append((properties, body))


def test_error_documents_are_sent_at_least_once(
    rabbitmq: RabbitMqBroker, runs: DbtRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """19.11: a broker that is down, a kill between sending and recording, an address that nobody
    knows: what is not recorded as sent stays to be sent, with the message id it had before.
    """
    queue, unknown = (f"{name}.{uuid4().hex[:8]}" for name in ("errors", "nowhere"))
    rabbitmq.declare_quorum_queue(queue)
    # a time that Python cannot read stops nothing
    early = {"received_at": datetime(1, 1, 1, tzinfo=timezone.utc)}
    fail(runs, failed("e1", queue), failed("${env:HOME}", queue), failed("e3", unknown) | early)
    place = ["--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)]
    send = ["send-errors", "--rabbitmq", rabbitmq.url, *place]

    assert main(send) == 1
    assert "error_documents is not there" in capsys.readouterr().err
    runs.run("run", "--select", *VIEWS)
    assert main(["send-errors", "--rabbitmq", NOBODY, *place]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("exactly-once: RabbitMQ at 127.0.0.1:1 cannot be sent to: ")

    killed = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE_RECORD, *send], check=False, capture_output=True
    )
    assert killed.returncode == -9, killed.stderr.decode()[-2000:]
    unsent = "select count(*) from {schema}.error_documents where sent_at is null"
    assert runs.rows(unsent) == [(3,)]
    assert len(taken(rabbitmq, queue)) == 2

    assert main(send) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "2 error documents are sent, but some stay unsent" in line
    assert f"{unknown}: RabbitMQ has no queue for it" in line
    messages = taken(rabbitmq, queue)
    assert set(Counter(properties.message_id for properties, _ in messages).values()) == {2}
    assert len(messages) == 4
    assert {properties.delivery_mode for properties, _ in messages} == {2}
    assert {properties.type for properties, _ in messages} == {"error_document"}
    body = next(told for told in (json.loads(body) for _, body in messages) if "e1" in str(told))
    assert body == {
        "delivery_id": "e1",
        "trigger_name": "orders",
        "document_type": "order",
        "document_key": "e1",
        "failed_by": "ERROR",
        "service": "book",
        "message": "the service has ended in error: KeyError: 'total'",
        "transport": "RABBITMQ",
        "document": '{"order": "e1 ü"}',
        "received_at": (THEN - timedelta(minutes=5)).isoformat(),
        "failed_at": (THEN + timedelta(minutes=1)).isoformat(),
    }
    recorded = runs.rows("select delivery_id, errors_to from {landing}.sent_errors")
    assert sorted(recorded) == [("${{env:HOME}}".format(), queue), ("e1", queue)]
    assert runs.rows("select delivery_id from {schema}.error_documents where sent_at is null") == [
        ("e3",)
    ]
    # once the address is known; what was sent is not sent again
    rabbitmq.declare_quorum_queue(unknown)
    worker = ["worker", "--once", *place, "--send-errors-rabbitmq"]
    assert main([*worker, NOBODY]) == 0
    assert "RabbitMQ at 127.0.0.1:1 cannot be sent to: " in capsys.readouterr().out
    assert main([*worker, rabbitmq.url]) == 0
    assert "1 error documents sent" in capsys.readouterr().out
    assert main(send) == 0
    assert capsys.readouterr().out == "0 error documents sent\n"
    assert (len(taken(rabbitmq, queue)), len(taken(rabbitmq, unknown))) == (4, 1)
    assert runs.rows(unsent) == [(0,)]


def test_a_publisher_says_which_addresses_rabbitmq_does_not_take(rabbitmq: RabbitMqBroker) -> None:
    """19.11: an address that cannot be a routing key, or an exchange that is not there, is told."""
    publisher = RabbitMqPublisher(rabbitmq.url)
    for address in ("nobody listens", "", "x" * 256):
        with pytest.raises(UndeliverableError):
            publisher.send(address, "m1", b"{}")
    publisher.close()
    publisher = RabbitMqPublisher(rabbitmq.url, exchange="none")
    with pytest.raises(ExactlyOnceError, match="NOT_FOUND"):
        publisher.send("a", "m1", b"{}")
    publisher.close()


def test_error_documents_go_over_amqp_1_0_as_well(artemis: ArtemisBroker) -> None:
    """19.11: a JMS provider gets a durable message, and is told of in a line where it is down."""
    from proton.utils import BlockingConnection

    queue = f"errors.{uuid4().hex[:8]}"
    publisher = AmqpPublisher(artemis.url)
    publisher.send(queue, "m1", '{"delivery_id": "ü"}'.encode())
    publisher.close()
    connection = BlockingConnection(artemis.url, timeout=30)
    receiver = connection.create_receiver(queue, credit=1)
    message = receiver.receive(timeout=60)
    receiver.accept()
    connection.close()
    assert (message.id, message.durable, message.subject) == ("m1", True, "error_document")
    assert json.loads(message.body) == {"delivery_id": "ü"}
    with pytest.raises(ExactlyOnceError, match="cannot be sent to"):
        AmqpPublisher(NOBODY)
