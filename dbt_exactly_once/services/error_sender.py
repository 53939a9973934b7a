"""Error documents, sent to where their publishers want them.

The sender publishes a document, waits until the broker confirms it, then records it in
landing.sent_errors. If it is killed in between, the document is sent again, with the same id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timezone
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dbt_exactly_once.adapter.engine import Engine, in_utc, readable_rows, run_in
from dbt_exactly_once.adapter.lake_version import RECORD
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.landing.brokers import Publisher, UndeliverableError

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

VIEW = "error_documents"
# documents between two appends to sent_errors
BATCH = 1000
# after so long a worker retries a broker that is down or an address that is not known
RETRY_SECONDS = 60
# the columns of the view that the publisher gets
CONTENT = (
    "delivery_id",
    "trigger_name",
    "document_type",
    "document_key",
    "failed_by",
    "service",
    "message",
    "transport",
    "document",
    "received_at",
    "failed_at",
)

SENT = (
    "sent_error_id string, message_id string, delivery_id string, trigger_name string, "
    "errors_to string, sent_at timestamp"
)


class ErrorSender:
    """Sends the error documents that name an address and are not recorded as sent."""

    def __init__(
        self,
        spark: SparkSession,
        schema: str,
        sent_errors: str,
        open_publisher: Callable[[], Publisher],
        echo: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._engine = Engine(run_in(spark))
        self._view = f"{schema}.{VIEW}"
        self._record_of_runs = f"{schema}.{RECORD}"
        self._sent_errors = sent_errors
        self._open_publisher = open_publisher
        self._echo = echo
        # addresses that the broker does not take messages for, and why
        self._refused: dict[str, str] = {}
        self._seen: str | None = None
        self._not_before = 0.0
        is_made = spark.catalog.databaseExists(schema) and self._engine.rows(
            f"show views in {schema} like '{VIEW}'"
        )
        if not is_made or "sent_at" not in spark.table(self._view).columns:
            raise ExactlyOnceError(
                f"{self._view} is not there, or was made by an earlier version: run `dbt build` "
                "first"
            )

    def send_all(self) -> int:
        """Send all there are; returns how many. Raises ExactlyOnceError if some are left."""
        self._refused.clear()
        sent = 0
        while documents := self._unsent():
            sent += self._send(documents)
        if self._refused:
            why = "; ".join(f"{address}: {cause}" for address, cause in self._refused.items())
            raise ExactlyOnceError(
                f"{sent} error documents are sent, but some stay unsent, since their errors_to is "
                f"not taken: {why}"
            )
        return sent

    def look(self) -> None:
        """Send what runs have published since the last look; errors are reported, not raised."""
        if monotonic() < self._not_before:
            return
        try:
            refs = self._engine.refs([self._record_of_runs])[self._record_of_runs]
            if refs.get("main") == self._seen:
                return
            sent = self.send_all()
        except Exception as error:
            # the worker that calls this has services to run
            self._echo(one_line(error))
            self._not_before = monotonic() + RETRY_SECONDS
            return
        self._seen = refs.get("main")
        if sent:
            self._echo(f"{sent} error documents sent")

    def _unsent(self) -> list[Row]:
        from pyspark.sql import functions

        found = self._spark.table(self._view).where("errors_to != '' and sent_at is null")
        if self._refused:
            found = found.where(~functions.col("errors_to").isin(list(self._refused)))
        order = ("failed_at", "delivery_id", "trigger_name")
        chosen = found.select(*CONTENT, "errors_to").orderBy(*order).limit(BATCH)
        return readable_rows(chosen)

    def _send(self, documents: Sequence[Row]) -> int:
        """Publish and record; returns how many were sent."""
        sent: list[tuple[Any, ...]] = []
        try:
            with closing(self._open_publisher()) as publisher:
                for document in documents:
                    if document.errors_to in self._refused:
                        continue
                    message_id = message_id_of(document)
                    try:
                        publisher.send(document.errors_to, message_id, body_of(document))
                    except UndeliverableError as error:
                        self._refused[document.errors_to] = str(error)
                        continue
                    sent.append(
                        (
                            str(uuid4()),
                            message_id,
                            document.delivery_id,
                            document.trigger_name,
                            document.errors_to,
                            datetime.now(timezone.utc),
                        )
                    )
        finally:
            # after an error too: those sent before the broker went down
            if sent:
                # not as a text of SQL: the ids come from outside
                self._spark.createDataFrame(sent, SENT).writeTo(self._sent_errors).append()
        return len(sent)


def message_id_of(document: Row) -> str:
    """The id of the message, the same each time the document is sent."""
    identity = [document.delivery_id, document.trigger_name, document.service]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def body_of(document: Row) -> bytes:
    """The message: what has failed, why, and the document itself, as JSON."""
    content = {name: in_utc(document[name]) for name in CONTENT}
    return json.dumps(content, ensure_ascii=False, default=datetime.isoformat).encode("utf-8")
