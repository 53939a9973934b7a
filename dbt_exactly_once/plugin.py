"""The dbt plugin: gives the macros of this project an object to call, `adapter.exactly_once`.

Jinja can neither catch an error of Spark nor look at the processes of this host, and a run needs
both: a filter that Spark cannot parse must be told in one line, and a lock must be known to be
held by a process that has died. dbt hands macros the methods that an adapter class declares as
available, so the plugin declares one more.
"""

from __future__ import annotations

import logging

from dbt.adapters.contracts.connection import Connection
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt.adapters.spark.impl import SparkAdapter
from dbt.plugins.manager import dbtPlugin

from dbt_exactly_once.lake import ensure_place
from dbt_exactly_once.transaction import Transactions

_adapters_open = SparkConnectionManager.open.__func__


def _open_where_the_lake_is(
    manager: type[SparkConnectionManager], connection: Connection
) -> Connection:
    """Open a connection as the adapter does, after the folders of a local lake exist."""
    if connection.state != "open":
        ensure_place(connection.credentials.server_side_parameters)
    return _adapters_open(manager, connection)


class ExactlyOncePlugin(dbtPlugin):
    """Adds `adapter.exactly_once` to the Spark adapter of this dbt process."""

    def initialize(self) -> None:
        """Declare the attribute once; starts no Spark."""

        if "exactly_once" in SparkAdapter._available_:
            return
        # PySpark logs every refused statement with the stack of the JVM; dbt tells it as well
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        SparkConnectionManager.open = classmethod(_open_where_the_lake_is)
        SparkAdapter.exactly_once = property(Transactions.of_adapter)
        SparkAdapter._available_ = SparkAdapter._available_ | {"exactly_once"}
