"""The members of dbt that are replaced at run time, since dbt has no extension point for them.

`PATCHES` lists all of them, with reasons. A command whose project does not have this package gets
dbt's own members. tests/python/test_patches.py fails when dbt has changed one of them, and when a
reason no longer holds.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt import compilation, selected_resources
from dbt.adapters.contracts.connection import Connection
from dbt.adapters.spark.connections import SparkConnectionManager, SparkCredentials
from dbt.adapters.spark.impl import SparkAdapter
from dbt.flags import get_flags
from dbt.graph.queue import GraphQueue
from dbt.parser import read_files
from dbt_common.clients.jinja import MacroFuzzEnvironment
from dbt_common.invocation import get_invocation_id

from dbt_exactly_once.adapter.lake import ensure_place
from dbt_exactly_once.adapter.seed_files import text_of_file
from dbt_exactly_once.adapter.session import open_session, share_compiled_code
from dbt_exactly_once.adapter.shared_session import look_around
from dbt_exactly_once.errors import ExactlyOnceError, errors_in_one_line
from dbt_exactly_once.resolvers.hooks import Hooks, load_hooks, register_hooks
from dbt_exactly_once.run.door import ExactlyOnce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# the commands whose SQL may call the user's functions
COMMANDS_WITH_HOOKS = ("build", "run", "test", "run-operation")

_opening = threading.Lock()
# the command that opened a session last, and that session
_opened: tuple[str, SparkSession] | None = None


@dataclass(frozen=True)
class Patch:
    """A member of a class or module of dbt, and what replaces it."""

    owner: Any
    member: str
    replacement: Any
    reason: str

    def apply(self) -> None:
        setattr(self.owner, self.member, self.replacement)

    def take_back(self) -> None:
        """Restore dbt's own member."""
        if ORIGINALS[self] is not None:
            setattr(self.owner, self.member, ORIGINALS[self])
        elif self.member in vars(self.owner):
            delattr(self.owner, self.member)


# ---------------------------------------------------------------- connections


def _open_where_the_lake_is(
    manager: type[SparkConnectionManager], connection: Connection
) -> Connection:
    """Open a connection as the adapter does, after making the lake's folders and registering the
    user's functions."""
    if connection.state == "open":
        return _original_open(manager, connection)
    ensure_place(connection.credentials.server_side_parameters)
    # dbt's threads open connections at the same time
    with _opening:
        if connection.credentials.method == "session":
            # the adapter would open the session only with its first statement
            share_compiled_code(_session_of_this_command(connection.credentials))
        opened = _original_open(manager, connection)
        if connection.credentials.method == "session":
            _keep_settings(opened)
        if connection.credentials.method == "thrift":
            hooks = _hooks_of_this_command()
            look_around(opened, hooks and hooks.content, get_flags().WHICH)
        return opened


def _session_of_this_command(credentials: SparkCredentials) -> SparkSession:
    """The session, which gets the profile's settings and the user's functions once in a command."""
    global _opened
    from pyspark import SparkContext

    invocation = get_invocation_id()
    if (
        _opened is None
        or _opened[0] != invocation
        or _opened[1].sparkContext is not SparkContext._active_spark_context
    ):
        hooks = _hooks_of_this_command()
        flags = get_flags()
        log = Path(flags.LOG_PATH) / "spark.log" if flags.QUIET else None
        spark = open_session(credentials, log)
        if hooks is not None:
            register_hooks(hooks, spark)
        _opened = invocation, spark
    return _opened[1]


def _hooks_of_this_command() -> Hooks | None:
    """The user's functions, if the SQL of this command may call them."""
    flags = get_flags()
    return load_hooks(flags.PROJECT_DIR) if flags.WHICH in COMMANDS_WITH_HOOKS else None


def _keep_settings(connection: Connection) -> None:
    """Stop the adapter from setting the profile's settings again with each statement.

    That would undo what a run has set, and takes as long as a small statement.
    """
    handle = connection.handle.handle
    handle.server_side_parameters = {
        name: value
        for name, value in handle.server_side_parameters.items()
        # without it the adapter would set Hive's with each statement
        if name == "spark.sql.catalogImplementation"
    }


@contextmanager
def _error_in_one_line(manager: SparkConnectionManager, sql: str) -> Iterator[None]:
    """Handle errors as the adapter does, which logs them in full, and raise them in one line."""
    raised: ExactlyOnceError | None = None
    with errors_in_one_line(), _original_handler(manager, sql):
        try:
            yield
        except ExactlyOnceError as error:
            # a nested handler has made it one line already: the adapter would wrap it again
            raised = error
    if raised is not None:
        raise raised


# ---------------------------------------------------------------- selected resources


def _say_what_is_queued(queue: GraphQueue, *arguments: Any, **options: Any) -> None:
    """Let macros see the queued nodes as `selected_resources`."""
    _original_queue(queue, *arguments, **options)
    selected_resources.set_selected_resources(queue.get_selected_nodes())


# ---------------------------------------------------------------- ephemeral models

_COMMENT = re.compile(r"\s*(?:--[^\n]*|/\*.*?\*/)", re.DOTALL)
# the start of a query that has CTEs
_WITH = re.compile(r"\s*with\b(?:\s+recursive\b)?", re.IGNORECASE)


def _put_ctes_first(sql: str, ctes: Sequence[Any]) -> str:
    """A query with ephemeral models as its first CTEs.

    ctes: dbt's InjectedCTE, with their `sql`.
    """
    if not ctes:
        return sql
    listed = ", ".join(cte.sql for cte in ctes)
    start = 0
    while comment := _COMMENT.match(sql, start):
        start = comment.end()
    found = _WITH.match(sql, start)
    if found is None:
        return f"with{listed} {sql}"
    return f"{sql[: found.end()]}{listed}, {sql[found.end() :]}"


# ---------------------------------------------------------------- templates

# more than a project has: so many texts differ only if they have values in them
MOST_TEMPLATES = 10_000
# the code of a template, by its text
_compiled: dict[str, Any] = {}


def _compile_once(environment: MacroFuzzEnvironment, source: Any, *options: Any) -> Any:
    """Compile a template whose text an earlier command of this process has compiled no more."""
    if options or not isinstance(source, str):
        return _original_compile(environment, source, *options)
    if source not in _compiled:
        if len(_compiled) >= MOST_TEMPLATES:
            _compiled.clear()
        _compiled[source] = _original_compile(environment, source)
    return _compiled[source]


# ---------------------------------------------------------------- files of a project


def _load_utf8(path: str, strip: bool = True) -> str:
    """Read a file as dbt does, and name it if it is not UTF-8."""
    text = text_of_file(path)
    return text.strip() if strip else text


# ---------------------------------------------------------------- all of them

_original_open = SparkConnectionManager.open.__func__
_original_handler = SparkConnectionManager.exception_handler
_original_queue = GraphQueue.__init__
_original_compile = MacroFuzzEnvironment.compile

PATCHES = (
    Patch(
        SparkConnectionManager,
        "open",
        classmethod(_open_where_the_lake_is),
        "The adapter opens a session with its first statement, in a lake whose folders must exist, "
        "and sets the settings of the profile with every statement. A run needs functions of the "
        "user in the session before that, and its settings to stay.",
    ),
    Patch(
        SparkConnectionManager,
        "exception_handler",
        _error_in_one_line,
        "The adapter turns an error of Spark into the text of it, which is pages of Java's stack.",
    ),
    Patch(
        GraphQueue,
        "__init__",
        _say_what_is_queued,
        "dbt sets `selected_resources` in all commands but `dbt retry`, in which macros see what "
        "the command before it in the process has selected, or nothing.",
    ),
    Patch(
        compilation,
        "inject_ctes_into_sql",
        _put_ctes_first,
        "dbt has sqlparse read all of a model to find where the ephemeral models it names go in, "
        "which takes a twentieth of a small run. They go behind its first word.",
    ),
    Patch(
        MacroFuzzEnvironment,
        "compile",
        _compile_once,
        "dbt compiles the template of each node anew in each command, which takes a twentieth of a "
        "small run in a process of many.",
    ),
    Patch(
        read_files,
        "load_file_contents",
        _load_utf8,
        "dbt ends with the stack of Python, which names no file, if one is not UTF-8.",
    ),
    Patch(
        SparkAdapter,
        "exactly_once",
        property(ExactlyOnce.of_adapter),
        "A macro can neither catch an error of Spark nor look at the processes of this host.",
    ),
    Patch(
        SparkAdapter,
        "_available_",
        SparkAdapter._available_ | {"exactly_once"},
        "Macros get those members of an adapter that its class has declared as available, which "
        "only the class itself can do.",
    ),
)


# dbt's own members, None if dbt has none
ORIGINALS = {patch: vars(patch.owner).get(patch.member) for patch in PATCHES}


def apply_patches() -> None:
    """Replace dbt's members in this process; starts no Spark."""
    for patch in PATCHES:
        patch.apply()


def take_patches_back() -> None:
    """Restore dbt's own members."""
    for patch in PATCHES:
        patch.take_back()
