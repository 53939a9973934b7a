"""Checks of the session that a client of a Thrift server shares with others.

The branch that a run writes to is a setting of the session, and so is how Spark analyses a run's
CTEs. A client that was killed leaves them set, and the next client would read, or write to, the
branch of a dead run. The user's functions are those that the server has loaded, which may be older
than the project's.
"""

from __future__ import annotations

from typing import Any

from dbt.adapters.contracts.connection import Connection, ConnectionState, LazyHandle
from dbt.adapters.spark.connections import SparkConnectionManager

from dbt_exactly_once.adapter.engine import SESSION_SETTINGS, Engine
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.process import ProcessIdentity

BRANCH_SETTING = "spark.wap.branch"
# Spark then puts the query of a CTE in its place before it analyses a command, not after
INLINE_SETTING = "spark.sql.legacy.inlineCTEInCommands"
# the schema of the lock of the run that has set the branch
LOCK_SCHEMA_SETTING = "exactly_once.lock_schema"
# the content of python_udfs that the server has registered
HOOKS_SETTING = "exactly_once.python_udfs"
# whether all connections to a Thrift server share one session
SHARING_SETTING = "spark.sql.hive.thriftServer.singleSession"
LOCK = "run_lock"

COMMANDS_THAT_PUBLISH = ("run", "build")
# these take the lock before they touch the setting, or read no ledger
COMMANDS_THAT_MAY_SHARE = (*COMMANDS_THAT_PUBLISH, "seed")


def look_around(connection: Connection, hooks: str | None, command: str) -> None:
    """Check a shared session before a command uses it, and set the settings that SQL depends on.

    hooks: the content of the project's python_udfs, if the command may call them.
    """

    def run(sql: str) -> list[tuple[Any, ...]]:
        cursor = connection.handle.cursor()
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    engine = Engine(run)
    try:
        # the server may have been started without `exactly-once thrift-server`
        for name, value in SESSION_SETTINGS.items():
            engine.set(name, value)
        if command in COMMANDS_THAT_PUBLISH:
            check_sharing(engine)
        tidy_up(engine, command)
        if hooks is not None:
            check_hooks(engine, hooks)
    except BaseException:
        # mark the connection as not open: the next thread opens it and gets the same error
        connection.handle.close()
        connection.handle = LazyHandle(SparkConnectionManager.open)
        connection.state = ConnectionState.INIT
        raise


def tidy_up(engine: Engine, command: str) -> None:
    """Reset the settings that a dead run has left in the session.

    Raises ExactlyOnceError if a run is at work in the session and the command would read what that
    run has not published.
    """
    branch = engine.setting(BRANCH_SETTING)
    if branch is None:
        return
    schema = engine.setting(LOCK_SCHEMA_SETTING)
    holder = engine.properties(f"{schema}.{LOCK}") if schema else None
    if holder is None or ProcessIdentity.of_properties(holder).is_known_dead():
        leave_run(engine)
    elif command not in COMMANDS_THAT_MAY_SHARE:
        raise ExactlyOnceError(
            f"exactly_once: run {holder['run_id']} is at work in the session of this Thrift "
            f"server, and `dbt {command}` would read what it has not published: wait for it to "
            "end, or use a target that leads to a server for readers"
        )


def leave_run(engine: Engine) -> None:
    """Reset what a run has set; the branch last, since by it a dead run's settings are noticed."""
    engine.reset(INLINE_SETTING)
    engine.reset(BRANCH_SETTING)


def check_sharing(engine: Engine) -> None:
    """Refuse a server on which dbt's connections would not all write to the run's branch."""
    if engine.setting(SHARING_SETTING) != "true":
        raise ExactlyOnceError(
            "exactly_once: this Thrift server gives each connection a session of its own, as "
            "readers want it: a run needs one that `exactly-once thrift-server` started without "
            "--readers"
        )


def check_hooks(engine: Engine, content: str) -> None:
    """Refuse a server that has registered other functions than the project has.

    A server that was started by other means has registered none: a call of one fails in Spark.
    """
    if engine.setting(HOOKS_SETTING) not in (None, content):
        raise ExactlyOnceError(
            "exactly_once: python_udfs is not what the Thrift server has loaded: start "
            "`exactly-once thrift-server` again, with the files of this project"
        )
