"""A resolver that does what the document itself says, and writes down each call.

`feeds.answer_in_document` is the same for the reference model.
"""

from __future__ import annotations

import json
from pathlib import Path

from python_udfs import Delivery, TransientError, resolver

CALLS = Path("FOLDER") / "calls"


@resolver("answer_in_document")
def answer_in_document(delivery: Delivery) -> tuple[str, str]:
    """NEW where the document says nothing."""
    call = [delivery.received_at.timestamp(), delivery.uuid, delivery.redelivery_count]
    with CALLS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(call) + "\n")
    document = delivery.document_json
    answer = document.get("answer") if isinstance(document, dict) else None
    message = f"the document says {answer}"
    if answer == "TRANSIENT_ERROR":
        raise TransientError(message)
    if answer == "ERROR":
        raise ValueError(message)
    return (answer or "NEW"), message
