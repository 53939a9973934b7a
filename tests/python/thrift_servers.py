"""Thrift servers of the tests' own, as `exactly-once thrift-server` starts them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_runs import PROJECT_FOLDER
from pyhive import hive

COMMAND = Path(sys.executable).parent / "exactly-once"


@dataclass
class ThriftServer:
    """A server that runs."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        """What the process has said so far."""
        return self.log.read_text()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, through a connection of its own."""
        with (
            closing(hive.connect("127.0.0.1", self.port, username="tests")) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def thrift_server(folder: Path, lake: Path, *options: str) -> Iterator[ThriftServer]:
    """Start a server on a lake, with the profile that lies in a folder."""
    port = free_port()
    log = folder / f"server-{port}.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            [COMMAND, "thrift-server", "--port", str(port), "--target", "local", *options],
            cwd=PROJECT_FOLDER,
            env={
                **os.environ,
                "EXACTLY_ONCE_LAKE": str(lake),
                "DBT_PROFILES_DIR": str(folder),
            },
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 400
        while "listening on" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield ThriftServer(port, server, log)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
