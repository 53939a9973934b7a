"""Errors that a person can fix, in one line."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dbt_common.exceptions import DbtRuntimeError


class ExactlyOnceError(DbtRuntimeError):
    """An error that a person can fix; its text is one line: what, where, what to do."""


def one_line(error: BaseException) -> str:
    """The most useful line of an error; a JVM error fills pages, with the cause at the end."""
    text = text_of(error)
    match = re.search(r"\[[A-Z][A-Z_0-9]+(?:\.[A-Z_0-9]+)*\][^\n]*", text)
    causes = re.findall(r"^\s*Caused by: ([^\n]*)", text, re.MULTILINE)
    telling = (
        line.strip().removeprefix(": ")
        for line in text.splitlines()
        if not re.fullmatch(r"\s*(Runtime Error|An error occurred while calling .*)?", line)
    )
    line = match.group(0) if match else causes[-1] if causes else next(telling, text)
    lost = re.search(r"Failed to connect: (jdbc:\S+)", text)
    if lost:
        # the driver's message says more than that of the socket below it
        cause = re.sub(r"^[\w.]+(Exception|Error): ", "", causes[0]) if causes else line
        line = f"the catalog {lost.group(1)} cannot be reached: {cause}"
    # parameters of an address may hold a password
    line = re.sub(r"(jdbc:[^\s?;]*)[?;]\S*?(?=:?(?:\s|$))", r"\1", line)
    line = re.sub(r"(jdbc:\w+:)[^\s?;]*@", r"\1//", line)
    return re.sub(r"\s+", " ", line).strip()[:400]


AGAIN = "start the run again: it finishes what was published and repeats what was not"
MORE_MEMORY = "give Spark's processes more (spark.driver.memory, spark.executor.memory)"
# Spark's analysis ends an error with the whole plan, a tree of hundreds of lines
PLAN = r";\n.*\n\s*[+:]- "
# messages of a Spark that shuts down, and of Py4J and Thrift if Spark's process is gone
ENDING = r"SparkContext was shut down|stopped SparkContext"
GONE = r"Answer from Java side is empty|Connection refused|Connection reset|Could not connect to"


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn an error that fills pages, or names only a socket, into one line: what happened and
    what to do.
    """
    try:
        yield
    except ExactlyOnceError:
        raise
    except Exception as error:
        text = text_of(error)
        line = one_line(error)
        # an error with a stack of the JVM may report that another server is gone, not Spark
        is_javas = "\tat " in text
        if line.startswith("the catalog "):
            line = f"{line.removesuffix('.')} ({AGAIN})"
        elif re.search(ENDING, line) or (not is_javas and re.search(GONE, text)):
            line = (
                "Spark is gone: its process was killed or had no memory left, or its server cannot "
                f"be reached (out of memory: {MORE_MEMORY}; {AGAIN})"
            )
        elif is_javas:
            remedy = MORE_MEMORY if "OutOfMemoryError" in line else "mend it"
            line = f"{line} ({remedy} and {AGAIN}; dbt.log has the whole error)"
        elif not re.search(PLAN, text):
            raise
        raise ExactlyOnceError(line) from error


def keep_errors_out_of_logs() -> None:
    """Drop the stacks that PySpark and Py4J log: commands and dbt report each error in a line."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs errors with the root logger, so its records are known by their file."""
    return "py4j" not in Path(record.pathname).parts


def text_of(error: BaseException) -> str:
    """The text of an error. Raises nothing, though Py4J asks Java, which may have ended."""
    try:
        return str(error)
    # SystemExit too: it would end a worker's thread before the outcome of its call is known
    except BaseException as lost:
        with suppress(BaseException):
            return str(lost)
        return ""


def error_text(error: BaseException) -> str:
    """The kind of an error and its text, as Python shows it at the end of a traceback."""
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
