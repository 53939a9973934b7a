"""A server of the tests' own that speaks as Amazon SQS does, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class SqsServer:
    """A server that runs."""

    client: Any

    def make_queue(self, name: str, **attributes: str) -> str:
        """Make a queue and give its URL."""
        return self.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    def publish(self, url: str, body: str, **attributes: str) -> str:
        """Publish a message and give its id."""
        sent = self.client.send_message(
            QueueUrl=url,
            MessageBody=body,
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in attributes.items()
            },
        )
        return sent["MessageId"]

    def messages(self, url: str) -> int:
        """How many messages the queue holds, hidden or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=names)
        return sum(int(found["Attributes"][name]) for name in names)


@contextmanager
def running_sqs(patch: pytest.MonkeyPatch) -> Iterator[SqsServer]:
    """Start a server without a queue; for it the environment has keys that are none."""
    import boto3

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "tests")
    patch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with running_moto() as address:
        yield SqsServer(boto3.client("sqs", endpoint_url=address))


@contextmanager
def running_moto() -> Iterator[str]:
    """Start a server that speaks as the services of Amazon do, and give its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
