"""The dbt plugin: gives the macros of this project an object to call, `adapter.exactly_once`.

Jinja can neither catch an error of Spark nor look at the processes of this host, and a run needs
both: a filter that Spark cannot parse must be told in one line, and a lock must be known to be
held by a process that has died. dbt hands macros the methods that an adapter class declares as
available, so the plugin declares one more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt import selected_resources
from dbt.adapters.contracts.connection import Connection
from dbt.adapters.spark.connections import SparkConnectionManager, SparkCredentials
from dbt.adapters.spark.impl import SparkAdapter
from dbt.flags import get_flags
from dbt.graph.queue import GraphQueue
from dbt.plugins.manager import dbtPlugin
from dbt_common.invocation import get_invocation_id

from dbt_exactly_once.adapter.engine import ExactlyOnceError, told_in_a_line
from dbt_exactly_once.adapter.lake import ensure_place
from dbt_exactly_once.adapter.session import open_session, share_compiled_code
from dbt_exactly_once.adapter.shared_session import look_around
from dbt_exactly_once.resolvers.hooks import load_hooks, register_hooks
from dbt_exactly_once.run.door import ExactlyOnce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_adapters_open = SparkConnectionManager.open.__func__
_adapters_handler = SparkConnectionManager.exception_handler
_dbts_queue = GraphQueue.__init__

_opening = threading.Lock()
# the command that has opened a session last
_opened: tuple[str, SparkSession] | None = None
# the commands whose SQL may call the user's functions
COMMANDS_WITH_HOOKS = ("build", "run", "test", "run-operation")


def _open_where_the_lake_is(
    manager: type[SparkConnectionManager], connection: Connection
) -> Connection:
    """Open a connection as the adapter does, where the lake is and with the user's functions."""
    if connection.state == "open":
        return _adapters_open(manager, connection)
    ensure_place(connection.credentials.server_side_parameters)
    flags = get_flags()
    # dbt's threads open connections at the same time
    with _opening:
        hooks = load_hooks(flags.PROJECT_DIR) if flags.WHICH in COMMANDS_WITH_HOOKS else None
        if connection.credentials.method == "session":
            # the adapter would open it with its first statement
            spark = _session_of_this_command(connection.credentials)
            if hooks is not None:
                register_hooks(hooks, spark)
        opened = _adapters_open(manager, connection)
        if connection.credentials.method == "session":
            _keep_settings(opened)
        if connection.credentials.method == "thrift":
            look_around(opened, hooks, flags.WHICH)
        return opened


def _session_of_this_command(credentials: SparkCredentials) -> SparkSession:
    """The session with the settings of the profile, given to it once in a dbt command."""
    global _opened
    from pyspark import SparkContext

    invocation = get_invocation_id()
    if (
        _opened is None
        or _opened[0] != invocation
        or _opened[1].sparkContext is not SparkContext._active_spark_context
    ):
        _opened = invocation, open_session(credentials)
    share_compiled_code(_opened[1])
    return _opened[1]


def _keep_settings(connection: Connection) -> None:
    """Keep the adapter from giving the session the settings of the profile with each statement.

    It would undo what a run has set, and takes as long as a small statement.
    """
    handle = connection.handle.handle
    handle.server_side_parameters = {
        name: value
        for name, value in handle.server_side_parameters.items()
        # the adapter would ask for Hive's
        if name == "spark.sql.catalogImplementation"
    }


@contextmanager
def _told_in_a_line(manager: SparkConnectionManager, sql: str) -> Iterator[None]:
    """Handle errors as the adapter does, which keeps the whole of them in its log."""
    told: ExactlyOnceError | None = None
    with told_in_a_line(), _adapters_handler(manager, sql):
        try:
            yield
        except ExactlyOnceError as error:
            # of a handler within this one: the adapter would make another error of it
            told = error
    if told is not None:
        raise told


def _say_what_is_queued(queue: GraphQueue, *arguments: Any, **options: Any) -> None:
    """Let macros see what is queued as what is selected: dbt says it of all commands but `retry`,
    whose `selected_resources` are those of the command before it in the process, or none.
    """
    _dbts_queue(queue, *arguments, **options)
    selected_resources.set_selected_resources(queue.get_selected_nodes())


class ExactlyOncePlugin(dbtPlugin):
    """Adds `adapter.exactly_once` to the Spark adapter of this dbt process."""

    def initialize(self) -> None:
        """Declare the attribute once; starts no Spark."""

        if "exactly_once" in SparkAdapter._available_:
            return
        # PySpark logs every refused statement with the stack of the JVM; dbt tells it as well
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        SparkConnectionManager.open = classmethod(_open_where_the_lake_is)
        SparkConnectionManager.exception_handler = _told_in_a_line
        GraphQueue.__init__ = _say_what_is_queued
        SparkAdapter.exactly_once = property(ExactlyOnce.of_adapter)
        SparkAdapter._available_ = SparkAdapter._available_ | {"exactly_once"}
