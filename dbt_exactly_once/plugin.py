"""The dbt plugin: gives the macros of this project an object to call, `adapter.exactly_once`.

Jinja can neither catch an error of Spark nor look at the processes of this host, and a run needs
both: a filter that Spark cannot parse must be told in one line, and a lock must be known to be
held by a process that has died. dbt hands macros the methods that an adapter class declares as
available, so the plugin declares one more.
"""

from __future__ import annotations

import logging

from dbt.plugins.manager import dbtPlugin

from dbt_exactly_once.transaction import Transactions


class ExactlyOncePlugin(dbtPlugin):
    """Adds `adapter.exactly_once` to the Spark adapter of this dbt process."""

    def initialize(self) -> None:
        """Declare the attribute once; starts no Spark."""
        from dbt.adapters.spark.impl import SparkAdapter

        if "exactly_once" in SparkAdapter._available_:
            return
        # PySpark logs every refused statement with the stack of the JVM; dbt tells it as well
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        SparkAdapter.exactly_once = property(Transactions.of_adapter)
        SparkAdapter._available_ = SparkAdapter._available_ | {"exactly_once"}
