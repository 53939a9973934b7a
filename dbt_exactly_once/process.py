"""Processes: whether the owner of a lock is known to be dead; signals that stop this process."""

from __future__ import annotations

import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

PROC = Path("/proc")
# Linux gives the namespace of the machine itself this number; those of containers have others
FIRST_PID_NAMESPACE = "pid:[4026531836]"
# the start time of a process that hides it
UNKNOWN = ""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that cannot be mistaken for a later one with the same number."""

    host: str
    # blank if it is unknown
    machine: str
    boot_id: str
    pid_namespace: str
    pid: str
    process_started: str

    @classmethod
    def own(cls) -> ProcessIdentity:
        """The identity of this process."""
        pid = os.getpid()
        boot_id, namespace = _text(PROC / "sys/kernel/random/boot_id"), _pid_namespace()
        return cls(
            host=socket.gethostname(),
            machine=_machine(boot_id, namespace),
            boot_id=boot_id,
            pid_namespace=namespace,
            pid=str(pid),
            process_started=_start_of(pid) or UNKNOWN,
        )

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> ProcessIdentity:
        """The identity that `as_properties` has returned; a missing field is blank."""
        return cls(**{field.name: properties.get(field.name, "") for field in fields(cls)})

    def is_known_dead(self) -> bool:
        """Whether the process has surely ended; False if this process cannot know."""
        here = ProcessIdentity.own()
        is_here = (self.host, self.machine, self.pid_namespace) == (
            here.host,
            here.machine,
            here.pid_namespace,
        )
        if not is_here or not self.machine or not self.process_started:
            return False
        if self.boot_id != here.boot_id:
            return bool(self.boot_id and here.boot_id)
        return _start_of(int(self.pid)) not in (UNKNOWN, self.process_started)

    def as_properties(self) -> dict[str, str]:
        """The identity as table properties."""
        return asdict(self)


def _machine(boot_id: str, namespace: str) -> str:
    """An id that no other machine has.

    In a container /etc/machine-id may be the image's, so there the boot id is used.
    """
    if PROC.exists():
        is_machines_own = namespace == FIRST_PID_NAMESPACE
        return (_text(Path("/etc/machine-id")) if is_machines_own else "") or boot_id
    address = uuid.getnode()
    # without a network card, getnode makes up an address per process, and sets this bit in it
    return "" if address >> 40 & 1 else f"{address:012x}"


def _pid_namespace() -> str:
    """The namespace in which this process's pid is valid; blank if the system has none."""
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _start_of(pid: int) -> str | None:
    """When a process started, UNKNOWN if it hides that, None if there is no such process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return UNKNOWN
    if not PROC.exists():
        return _start_by_psutil(pid)
    stat = _text(PROC / str(pid) / "stat")
    if not stat:
        return UNKNOWN
    fields = stat.rpartition(")")[2].split()
    # in clock ticks since boot: setting the clock does not change it
    return None if fields[0] == "Z" else fields[19]


def _start_by_psutil(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return UNKNOWN


@contextmanager
def at_signals(call: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM call a function, and do nothing else."""
    before = {
        number: signal.signal(number, lambda *_: call())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that started work is finished in order."""
    stop = threading.Event()
    with at_signals(stop.set):
        yield stop
