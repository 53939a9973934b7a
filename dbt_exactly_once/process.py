"""Processes: who holds a lock and may be known to be dead; how one is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that cannot be mistaken for a later one with the same number."""

    host: str
    boot_id: str
    pid: str
    process_started: str

    @classmethod
    def own(cls) -> ProcessIdentity:
        """The identity of this process."""
        pid = os.getpid()
        return cls(socket.gethostname(), _boot_id(), str(pid), _start_of(pid) or "")

    def is_known_dead(self) -> bool:
        """True where this host can tell that the process has ended; False where it cannot."""
        here = ProcessIdentity.own()
        if not self.boot_id or self.host != here.host:
            return False
        if self.boot_id != here.boot_id:
            return True
        return _start_of(int(self.pid)) != self.process_started

    def as_properties(self) -> dict[str, str]:
        """The identity as table properties."""
        return asdict(self)


def _boot_id() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def _start_of(pid: int) -> str | None:
    """Start of a process in clock ticks since boot, None where there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that what has begun is ended in order."""
    stop = threading.Event()

    def note(*_: Any) -> None:
        stop.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
