"""What a broker delivers is acknowledged after it has landed: a killed lander loses nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from artemis import ArtemisBroker
from dbt_runs import PROJECT_FOLDER, DbtRuns
from pyspark.sql import SparkSession
from rabbitmq import RabbitMqBroker

from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.cli import main
from dbt_exactly_once.commands import place
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.amqp import Amqp
from dbt_exactly_once.landing.brokers import land_from_broker, row_of, write_rows
from dbt_exactly_once.landing.files import read_batches
from dbt_exactly_once.landing.land import land
from dbt_exactly_once.landing.outcome import Landing
from dbt_exactly_once.landing.rabbitmq import RabbitMq

Rows = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def queue(rabbitmq: RabbitMqBroker) -> str:
    name = f"orders.{uuid4().hex[:8]}"
    rabbitmq.declare_quorum_queue(name)
    return name


def publish_order(broker: RabbitMqBroker, queue: str, number: int) -> None:
    broker.publish(
        queue,
        f'{{"order": {{"number": "A{number}"}}}}'.encode(),
        type="order.created",
        message_id=f"m{number}",
        delivery_mode=2,
        headers={"uuid": f"u{number}", "errors_to": "errors.orders"},
    )


def take(
    broker: RabbitMqBroker, queue: str, land_file: Callable[[Path], object], most: int = 100
) -> tuple[int, list[str]]:
    """Land until the queue is empty; how many were taken and the lines."""
    said: list[str] = []
    taken = land_from_broker(
        RabbitMq(broker.url, queue, most),
        land_file,
        queue,
        said.append,
        threading.Event(),
        most=most,
        seconds=2,
        until_empty=True,
    )
    return taken, said


def test_messages_land_with_what_the_broker_says_of_them(
    rabbitmq: RabbitMqBroker, queue: str, spark: SparkSession, project: Project, rows: Rows
) -> None:
    publish_order(rabbitmq, queue, 1)
    rabbitmq.publish(queue, b"plain", delivery_mode=1, headers={"track_id": 7})
    rabbitmq.publish(queue, b'{"name": "\xff"}', message_id="m3", delivery_mode=2)

    taken, said = take(rabbitmq, queue, lambda file: land(spark, project, [file]))
    assert taken == 3
    counts, example, kept = said
    assert counts == "deliveries: landed 2, rejected 1 (NOT_UTF8 1), repeated 0"
    assert re.search(r", line 3: NOT_UTF8: byte \d+ of the row, 0xff, is not UTF-8$", example)
    assert f"{project.landing_schema}.rejected_landings" in kept
    assert rabbitmq.ready(queue) == 0
    assert rows(
        "select transport, document_type, guaranteed, uuid, track_id, event_id, errors_to, "
        "redelivery_count, document "
        f"from {project.landing_schema}.deliveries order by document desc"
    ) == [
        (
            "RABBITMQ",
            "order.created",
            True,
            "u1",
            None,
            "m1",
            "errors.orders",
            0,
            '{"order": {"number": "A1"}}',
        ),
        ("RABBITMQ", queue, False, None, "7", None, None, 0, "plain"),
    ]
    [(source, raw)] = rows(
        f"select source_file, raw_text from {project.landing_schema}.rejected_landings"
    )
    assert queue in source
    assert r"\xff" in raw


def test_what_has_not_landed_is_delivered_again_and_counted(
    rabbitmq: RabbitMqBroker, queue: str
) -> None:
    for number in range(3):
        publish_order(rabbitmq, queue, number)

    def fail(_: Path) -> object:
        raise OSError("the disk is full")

    # the message that fails takes its connection with it, as a killed process does
    failing = RabbitMq(rabbitmq.url, queue, 10)
    with pytest.raises(OSError, match="disk is full"):
        land_from_broker(
            failing, fail, queue, print, threading.Event(), seconds=2, until_empty=True
        )
    failing.close()

    landed: list[dict[str, Any]] = []

    def keep(file: Path) -> Landing:
        for batch in read_batches(file):
            landed.extend(batch.rows)
        return Landing("deliveries", len(landed))

    taken, _ = take(rabbitmq, queue, keep, most=2)
    assert taken == 3
    assert [(row["uuid"], row["redelivery_count"]) for row in landed] == [
        ("u0", 1),
        ("u1", 1),
        ("u2", 1),
    ]
    assert len({row["delivery_id"] for row in landed}) == 3
    assert rabbitmq.ready(queue) == 0


def test_a_killed_lander_loses_nothing(
    rabbitmq: RabbitMqBroker,
    queue: str,
    spark: SparkSession,
    profiles_dir: Path,
    lake: Path,
    tmp_path: Path,
) -> None:
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    for number in range(60):
        publish_order(rabbitmq, queue, number)

    def lander(*options: str) -> subprocess.Popen:
        return subprocess.Popen(
            [
                Path(sys.executable).parent / "exactly-once",
                "land",
                *("--rabbitmq", rabbitmq.url, "--queue", queue, "--batch", "10", *options),
                *("--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)),
            ],
            cwd=PROJECT_FOLDER,
            env={**os.environ, "EXACTLY_ONCE_LAKE": str(lake)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    killed = lander()
    assert killed.stdout is not None
    next(line for line in killed.stdout if "landed 10" in line)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert lander("--until-empty", "--every", "3").wait() == 0

    assert rabbitmq.ready(queue) == 0
    landed = runs.rows(
        "select uuid, count(*), max(redelivery_count) from {landing}.deliveries group by uuid"
    )
    assert {row[0] for row in landed} == {f"u{number}" for number in range(60)}
    assert all(count == 1 or redelivered > 0 for _, count, redelivered in landed)


def fail_one(broker: ArtemisBroker, queue: str) -> None:
    """Take a message and give it back as failed, as a JMS client's rollback does."""
    from proton import Delivery
    from proton.utils import BlockingConnection

    connection = BlockingConnection(broker.url, timeout=30)
    receiver = connection.create_receiver(queue, credit=1)
    receiver.receive(timeout=60)
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.failed = True
    delivery.update(Delivery.MODIFIED)
    delivery.settle()
    connection.close()


TAKE_AND_WAIT = """
import sys, time
from dbt_exactly_once.landing.amqp import Amqp
print(len(Amqp(sys.argv[1], sys.argv[2], 10).receive(1, 60)), flush=True)
time.sleep(600)
"""


def test_a_jms_message_lands_over_amqp_once_its_killed_taker_is_gone(
    artemis: ArtemisBroker, spark: SparkSession, project: Project, rows: Rows
) -> None:
    from proton import Message
    from proton.utils import BlockingConnection

    queue = f"orders.{uuid4().hex[:8]}"
    sent = BlockingConnection(artemis.url, timeout=30)
    sent.create_sender(queue).send(
        Message(
            body='{"order": {"number": "A1"}}',
            durable=True,
            id="ID:A1",
            subject="order.created",
            properties={"uuid": "u1"},
        )
    )
    fail_one(artemis, queue)
    killed = subprocess.Popen(
        [sys.executable, "-c", TAKE_AND_WAIT, artemis.url, queue],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert killed.stdout is not None
    assert killed.stdout.readline() == "1\n"
    killed.kill()
    killed.wait()
    assert artemis.messages(queue) == 1

    taken = land_from_broker(
        Amqp(artemis.url, queue, 10),
        lambda file: land(spark, project, [file]),
        queue,
        print,
        threading.Event(),
        most=10,
        seconds=5,
        until_empty=True,
    )
    assert taken == 1
    assert rows(
        "select transport, document_type, guaranteed, uuid, event_id, document "
        f"from {project.landing_schema}.deliveries"
    ) == [("JMS", "order.created", True, "u1", "ID:A1", '{"order": {"number": "A1"}}')]
    # the failure counts always; of a client that dies Artemis counts some deliveries
    [(count,)] = rows(f"select redelivery_count from {project.landing_schema}.deliveries")
    assert count in (2, 3)
    assert artemis.messages(queue) == 0


def test_bytes_that_are_no_text_reach_the_file_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    write_rows(file, [row_of("JMS", "q", 1, {}, document=b"\xff".decode(errors="surrogateescape"))])
    assert b'"document": "\xff"' in file.read_bytes()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            [],
            "nothing to land: name files, or a broker with --rabbitmq, --amqp, --kafka, --sqs",
        ),
        (["--rabbitmq", "amqp://nowhere"], "name its --queue, and no files"),
        (["--kafka", "nowhere"], "name its --topic and its --group, and no files"),
        (["--kafka", "nowhere", "--topic", "t"], "name its --topic and its --group, and no files"),
        (["--sqs", "https://nowhere/1/orders", "feed.jsonl"], "land: name no files"),
        (["--rabbitmq", "amqp://nowhere", "--queue", "q", "feed.jsonl"], "and no files"),
    ],
)
def test_what_to_land_must_be_said(
    options: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(place, "require_extra", lambda _: None)
    assert main(["land", *options]) == 1
    assert told in capsys.readouterr().err


def test_a_count_that_is_no_number_is_rejected_with_its_row(
    rabbitmq: RabbitMqBroker, spark: SparkSession, project: Project, rows: Rows
) -> None:
    """To a classic queue a publisher may write the header of quorum queues."""
    queue = f"orders.{uuid4().hex[:8]}"
    with rabbitmq.connect() as connection:
        connection.channel().queue_declare(queue, durable=True)
    for number, count in enumerate(("2", "abc", None), 1):
        headers = {} if count is None else {"x-delivery-count": count}
        rabbitmq.publish(queue, b"{}", message_id=f"m{number}", delivery_mode=2, headers=headers)

    taken, said = take(rabbitmq, queue, lambda file: land(spark, project, [file]), most=2)
    assert taken == 3
    assert "deliveries: landed 0, rejected 2 (WRONG_TYPE 2), repeated 0" in said
    assert rows(f"select event_id from {project.landing_schema}.deliveries") == [("m3",)]
    assert rabbitmq.ready(queue) == 0


def test_a_queue_that_is_deleted_ends_its_lander(rabbitmq: RabbitMqBroker, queue: str) -> None:
    def delete(file: Path) -> Landing:
        with rabbitmq.connect() as connection:
            connection.channel().queue_delete(queue)
        return Landing("deliveries", 1, {})

    publish_order(rabbitmq, queue, 1)
    with pytest.raises(ExactlyOnceError, match=f"queue {queue} of RabbitMQ was deleted"):
        take(rabbitmq, queue, delete)


def test_no_part_of_a_password_is_shown(rabbitmq: RabbitMqBroker) -> None:
    with pytest.raises(ExactlyOnceError) as error:
        RabbitMq("amqp://guest:sec/ret@127.0.0.1:1", "orders", 1)
    assert "sec" not in error.value.msg
    assert (
        "127.0.0.1:1 cannot be taken from: the URL cannot be read; a character" in error.value.msg
    )
