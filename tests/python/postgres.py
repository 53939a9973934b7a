"""A PostgreSQL server of the tests' own, on loopback, gone with them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from thrift_servers import free_port


@dataclass
class Postgres:
    """A server that runs; `kill` ends it as a power cut would, and `start` makes it run again."""

    address: str
    folder: Path
    command: list[str]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        # pytest shows what it logs if the test fails. In a session of its own no signal for pytest
        # reaches it
        self.process = subprocess.Popen(self.command, cwd=self.folder, start_new_session=True)
        _wait_for(self.address)

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def kill(self) -> None:
        """End the server and whatever it has started, at once."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        subprocess.run(["pkill", "-KILL", "-P", str(first)], check=False)
        os.kill(first, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """End the server, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def find_programs() -> Path | None:
    """The folder of PostgreSQL's server programs, None where it is not installed."""
    found = shutil.which("postgres")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return Path(found).parent if found else next(iter(folders), None)


@contextmanager
def running_postgres(programs: Path) -> Iterator[Postgres]:
    """Start a server in a folder of its own, where its user can go and its socket's path is short:
    it refuses to run as root, and another user cannot enter pytest's folders."""
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        as_user = user if os.geteuid() == 0 else []
        if as_user:
            shutil.chown(folder, "postgres", "postgres")
        data = ["-D", str(folder / "data")]
        initdb = [*as_user, str(programs / "initdb"), *data, "-A", "trust", "-U", "tests"]
        subprocess.run([*initdb, "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd=folder)
        port = free_port()
        at = ["-h", "127.0.0.1", "-p", str(port), "-k", str(folder)]
        address = f"postgresql://tests@127.0.0.1:{port}/postgres"
        server = Postgres(address, folder, [*as_user, str(programs / "postgres"), *data, *at, "-F"])
        try:
            server.start()
            yield server
        finally:
            server.end()


def _wait_for(address: str) -> None:
    for _ in range(200):
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise TimeoutError(f"no PostgreSQL at {address}")
