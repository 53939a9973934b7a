"""A PostgreSQL server of the tests' own, on loopback, gone with them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
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
        self.process = subprocess.Popen(
            self.command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        _wait_for(self.address)

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def kill(self) -> None:
        """End the server and whatever it has started, at once."""
        first = int((self.folder / "postmaster.pid").read_text().splitlines()[0])
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
def running_postgres(programs: Path, folder: Path) -> Iterator[Postgres]:
    """Start a server in a folder that does not exist yet."""
    # it refuses to run as root
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    as_user = user if os.geteuid() == 0 else []
    folder.mkdir(mode=0o700)
    if as_user:
        shutil.chown(folder, "postgres", "postgres")
        for parent in folder.parents:
            if parent.stat().st_uid == 0 and parent != Path("/tmp"):
                parent.chmod(parent.stat().st_mode | 0o011)
    port = free_port()
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    initdb = [*as_user, str(programs / "initdb"), "-D", str(folder), "-A", "trust", "-U", "tests"]
    subprocess.run([*initdb, "--no-sync"], **quiet)
    place = ["-D", str(folder), "-h", "127.0.0.1", "-p", str(port), "-k", str(folder)]
    address = f"postgresql://tests@127.0.0.1:{port}/postgres"
    server = Postgres(address, folder, [*as_user, str(programs / "postgres"), *place, "-F"])
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
