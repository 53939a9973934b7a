"""Services: functions that `exactly-once worker` calls, and what they are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from python_udfs._hooks import Function, HasDocument, Hook, _only_argument, registry


@dataclass(frozen=True)
class Work(HasDocument):
    """A document that a service is to process now.

    attempt: counts from 1, and again from 1 after the trigger was resumed.
    document: its text as it was received, or the text that it was resubmitted with.
    errors_to: where the publisher wants errors to go.
    received_at: when it was taken from the transport, UTC.
    """

    delivery_id: str
    trigger_name: str
    service: str
    attempt: int
    document_type: str | None
    document_key: str | None
    document: str | None
    transport: str
    errors_to: str | None
    received_at: datetime


def service(name: str) -> Callable[[Function], Function]:
    """Register a function that processes documents, under the name that trigger conditions give.

    It takes one `Work`. When it returns, the document is processed; a text that it returns is kept
    as the message. If it raises `TransientError`, it is called again, as the trigger's retry
    settings allow; any other error ends the document as failed. It runs in the process of
    `exactly-once worker`, in a thread, and never in a Spark task.
    """

    def register(function: Function) -> Function:
        _only_argument("service", name, function)
        registry.add(Hook("service", name, function))
        return function

    return register
