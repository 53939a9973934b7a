"""Services that are Python functions: `exactly-once worker` calls them."""

import os
import signal

from python_udfs import TransientError, Work, service


@service("orders.refund")
def refund(work: Work) -> str:
    """Refund a cancelled order; now and then the bank does not answer at first."""
    order = (work.document_json or {}).get("order", {})
    if work.attempt == 1 and str(order.get("number", "")).endswith("7"):
        raise TransientError("the bank does not answer")
    return f"refunded {order.get('total')} {order.get('currency')}"


@service("parcels.pack")
def pack(work: Work) -> None:
    """Die in the middle of the work, as a machine that loses its power does."""
    os.kill(os.getpid(), signal.SIGKILL)
