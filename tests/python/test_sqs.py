"""What SQS delivers lands with the count that SQS keeps, and is deleted after that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqs_server import SqsServer

from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing import sqs as landing_sqs
from dbt_exactly_once.landing.brokers import land_from_broker
from dbt_exactly_once.landing.files import read_batches
from dbt_exactly_once.landing.land import land
from dbt_exactly_once.landing.outcome import Landing
from dbt_exactly_once.landing.sqs import Sqs, place_of

Rows = Callable[[str], list[tuple[Any, ...]]]


def take(url: str, land_file: Callable[[Path], object], most: int = 1000) -> tuple[int, list[str]]:
    """Land until the queue is empty; how many were taken and the lines."""
    said: list[str] = []
    taken = land_from_broker(
        Sqs(url),
        land_file,
        "orders",
        said.append,
        threading.Event(),
        most=most,
        seconds=1,
        until_empty=True,
    )
    return taken, said


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [row for batch in read_batches(file) for row in batch.rows if row]


def test_messages_land_with_what_sqs_says_of_them(
    sqs: SqsServer, spark: SparkSession, project: Project, rows: Rows
) -> None:
    url = sqs.make_queue("orders")
    first = sqs.publish(
        url, '{"order": 1}', uuid="u1", document_type="order.created", errors_to="e", other="x"
    )
    second = sqs.publish(url, "plain")
    # taken by somebody who does not delete it
    sqs.client.receive_message(QueueUrl=url, MaxNumberOfMessages=1, VisibilityTimeout=0)

    taken, said = take(url, lambda file: land(spark, project, [file]))
    assert (taken, said) == (2, ["deliveries: landed 2, rejected 0, repeated 0"])
    assert sqs.messages(url) == 0
    assert rows(
        "select transport, document_type, guaranteed, uuid, event_id, redelivery_count, errors_to, "
        f"document from {project.landing_schema}.deliveries order by redelivery_count desc"
    ) == [
        ("SQS", "order.created", True, "u1", first, 2, "e", '{"order": 1}'),
        ("SQS", "orders", True, None, second, 1, None, "plain"),
    ]


def test_what_has_not_landed_is_delivered_again_and_counted(
    sqs: SqsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing_sqs, "HIDDEN_SECONDS", 1)
    url = sqs.make_queue("orders")
    for number in range(25):
        sqs.publish(url, f"{number}")

    def fail(_: Path) -> Landing:
        assert sqs.messages(url) == 25
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        take(url, fail)
    time.sleep(2.5)
    landed: list[dict[str, Any]] = []

    def keep(file: Path) -> Landing:
        landed.extend(rows_of(file))
        return Landing("deliveries", len(landed))

    assert take(url, keep, most=12)[0] == 25
    assert sorted(int(row["document"]) for row in landed) == list(range(25))
    assert {row["redelivery_count"] for row in landed} == {2}
    assert len({row["delivery_id"] for row in landed}) == 25
    assert sqs.messages(url) == 0


def test_nobody_else_is_given_what_takes_long_to_land(
    sqs: SqsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing_sqs, "HIDDEN_SECONDS", 2)
    monkeypatch.setattr(landing_sqs, "RENEW_SECONDS", 0.5)
    url = sqs.make_queue("orders")
    for number in range(12):
        sqs.publish(url, f"{number}")
    others: list[object] = []

    def land_slowly(file: Path) -> Landing:
        deadline = time.monotonic() + 6
        while time.monotonic() < deadline:
            others.extend(sqs.client.receive_message(QueueUrl=url).get("Messages", ()))
            time.sleep(0.2)
        return Landing("deliveries", len(rows_of(file)))

    assert take(url, land_slowly)[0] == 12
    assert not others
    assert sqs.messages(url) == 0


def test_a_message_that_is_not_deleted_is_told(sqs: SqsServer) -> None:
    url = sqs.make_queue("orders")
    sqs.publish(url, "plain")

    def lose_the_queue(_: Path) -> Landing:
        sqs.client.delete_queue(QueueUrl=url)
        return Landing("deliveries", 1)

    with pytest.raises(ExactlyOnceError) as error:
        take(url, lose_the_queue)
    assert error.value.msg.startswith("orders: 1 deliveries have landed, but")
    assert "start the command again" in error.value.msg


def test_a_queue_that_cannot_be_taken_from_is_told_with_its_cause(
    sqs: SqsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(url: str) -> str:
        with pytest.raises(ExactlyOnceError) as error:
            Sqs(url)
        return error.value.msg.removeprefix(f"queue {url} cannot be taken from: ")

    missing = sqs.make_queue("orders").replace("orders", "invoices")
    assert told(missing).endswith("The specified queue does not exist.")
    assert told("http://127.0.0.1:1/1/orders").startswith("Could not connect to the endpoint URL")
    for url in ("orders", "https://sqs.eu-central-1.amazonaws.com"):
        assert told(url) == (
            "name the queue by its URL, https://sqs.REGION.amazonaws.com/ACCOUNT/NAME"
        )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    assert told(missing) == "Unable to locate credentials"


def test_the_region_is_that_of_the_url() -> None:
    assert place_of("https://sqs.eu-west-3.amazonaws.com/1/orders") == {
        "endpoint_url": "https://sqs.eu-west-3.amazonaws.com",
        "region_name": "eu-west-3",
    }
    assert place_of("https://sqs.cn-north-1.amazonaws.com.cn/1/orders")["region_name"] == (
        "cn-north-1"
    )
    assert place_of("http://localhost:4566/1/orders") == {"endpoint_url": "http://localhost:4566"}
