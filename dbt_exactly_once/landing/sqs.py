"""Amazon SQS: deliveries are taken from a queue, with the count that SQS keeps of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.brokers import HEADERS, PUMP_SECONDS, cause_of, row_of

# limits of SQS: messages in one request, seconds to wait for one
MOST_IN_REQUEST = 10
MOST_WAIT_SECONDS = 20
# while messages land, they are hidden from others for so long, which is renewed this often
HIDDEN_SECONDS = 60
RENEW_SECONDS = 20


class Sqs:
    """A queue of Amazon SQS, named by its URL.

    `ApproximateReceiveCount` counts deliveries from 1.
    """

    def __init__(self, url: str) -> None:
        import boto3

        self._url = url
        self.name = url.rpartition("/")[2]
        self._session = uuid4().hex[:12]
        self._number = 0
        # receipts of what was received and not acknowledged
        self._receipts: list[str] = []
        self._renew_at = 0.0
        try:
            self._client = boto3.Session().client("sqs", **place_of(url))
            self._client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        except Exception as error:
            raise self._not_taken(error) from error

    def receive(self, most: int, seconds: float) -> list[dict[str, Any]]:
        end = monotonic() + seconds
        rows: list[dict[str, Any]] = []
        self._receipts.clear()
        while len(rows) < most and (left := end - monotonic()) > 0:
            try:
                answer = self._client.receive_message(
                    QueueUrl=self._url,
                    MaxNumberOfMessages=min(MOST_IN_REQUEST, most - len(rows)),
                    # without a wait SQS asks only some of its servers
                    WaitTimeSeconds=min(MOST_WAIT_SECONDS, ceil(left)),
                    VisibilityTimeout=HIDDEN_SECONDS + ceil(left),
                    MessageSystemAttributeNames=["ApproximateReceiveCount"],
                    MessageAttributeNames=list(HEADERS),
                )
            except Exception as error:
                raise self._not_taken(error) from error
            for message in answer.get("Messages", ()):
                self._receipts.append(message["ReceiptHandle"])
                rows.append(self._row(message))
        self._renew_at = monotonic() + RENEW_SECONDS
        return rows

    def acknowledge(self) -> None:
        for entries in self._requests():
            answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            for failed in answer.get("Failed", ()):
                raise ExactlyOnceError(failed.get("Message") or failed["Code"])
        self._receipts.clear()

    def keep_alive(self) -> None:
        """Keep the messages hidden from other consumers, which would land them too."""
        sleep(PUMP_SECONDS)
        if monotonic() < self._renew_at:
            return
        self._renew_at = monotonic() + RENEW_SECONDS
        for entries in self._requests(VisibilityTimeout=HIDDEN_SECONDS):
            self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)

    def close(self) -> None:
        # messages that were not acknowledged become visible again after their time-out
        with suppress(Exception):
            self._client.close()

    def _requests(self, **values: int) -> Iterator[list[dict[str, Any]]]:
        """What was received, in pieces that one request takes."""
        entries = [
            {"Id": str(number), "ReceiptHandle": receipt, **values}
            for number, receipt in enumerate(self._receipts)
        ]
        for start in range(0, len(entries), MOST_IN_REQUEST):
            yield entries[start : start + MOST_IN_REQUEST]

    def _row(self, message: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        attributes = message.get("MessageAttributes", {})
        return row_of(
            "SQS",
            self.name,
            f"{self._session}-{self._number}",
            {name: value.get("StringValue") for name, value in attributes.items()},
            document_type=self.name,
            guaranteed=True,
            event_id=message["MessageId"],
            redelivery_count=int(message["Attributes"]["ApproximateReceiveCount"]),
            document=message["Body"],
        )

    def _not_taken(self, error: Exception) -> ExactlyOnceError:
        return ExactlyOnceError(f"queue {self._url} cannot be taken from: {cause_of(error)}")


def place_of(url: str) -> dict[str, str]:
    """Where the queue is: the endpoint, and the region if the host name has one."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.path.strip("/"):
        raise ValueError("name the queue by its URL, https://sqs.REGION.amazonaws.com/ACCOUNT/NAME")
    place = {"endpoint_url": f"{parts.scheme}://{parts.netloc}"}
    region = re.fullmatch(r"sqs(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?", parts.netloc)
    if region:
        place["region_name"] = region[1]
    return place
