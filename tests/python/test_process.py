"""A process that holds a lock is known to be dead only where that is sure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dbt_exactly_once import process
from dbt_exactly_once.process import ProcessIdentity

TELL = (
    "import sys; from dbt_exactly_once.process import ProcessIdentity as P; "
    "print(*P.own().as_properties().values(), sep='\\n', flush=True); sys.stdin.read()"
)
FOLDER = Path(__file__).parents[2]


@contextmanager
def other(*prefix: str) -> Iterator[ProcessIdentity]:
    """Another process that lives, with what it says of itself."""
    with subprocess.Popen(
        [*prefix, sys.executable, "-c", TELL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=FOLDER,
    ) as child:
        assert child.stdout is not None
        yield ProcessIdentity(*(child.stdout.readline().rstrip("\n") for _ in range(6)))


def in_namespace() -> list[str]:
    """A command before a command: it gets a pid namespace of its own, with the /proc of that."""
    prefix = ["unshare", "--pid", "--fork", "--mount-proc"]
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no pid namespace can be made here: {tried.stderr.strip()}")
    return prefix


def test_a_process_is_dead_when_it_has_ended() -> None:
    with other() as child:
        assert child.process_started
        assert not child.is_known_dead()
        # its number, given to another one
        assert replace(child, process_started="1").is_known_dead()
    assert child.is_known_dead()


def test_a_process_in_another_pid_namespace_is_alive_until_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """18.14: A live owner of a lock in another container of the same host name is not dead, though
    no process here has its number.
    """
    with other(*in_namespace()) as child:
        assert child.pid_namespace != ProcessIdentity.own().pid_namespace
        assert not child.is_known_dead()
        # of its machine a container knows the boot alone: after another one nothing is sure
        assert child.machine == child.boot_id
        monkeypatch.setattr(process, "_pid_namespace", lambda: child.pid_namespace)
        assert not replace(child, machine="later", boot_id="later").is_known_dead()


def test_a_process_of_another_machine_of_that_name_is_alive() -> None:
    """18.14: Another machine with the same host name is no earlier boot of this one."""
    own = ProcessIdentity.own()
    assert not replace(own, machine="other", boot_id="other").is_known_dead()
    assert not replace(own, machine="", boot_id="other").is_known_dead()
    assert not replace(own, host="other", pid="4194303").is_known_dead()
    # a lock that an earlier version has made
    assert not ProcessIdentity.of_properties({"host": own.host, "pid": "1"}).is_known_dead()


@pytest.mark.skipif(
    process._pid_namespace() != process.FIRST_PID_NAMESPACE
    or not Path("/etc/machine-id").read_text().strip(),
    reason="only a machine that knows its id can tell that it was started again",
)
def test_an_earlier_boot_of_this_machine_is_dead() -> None:
    assert replace(ProcessIdentity.own(), boot_id="earlier").is_known_dead()


def test_without_proc_a_dead_process_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """18.14: As on macOS, which has no /proc, no pid namespaces and no boot id."""
    pytest.importorskip("psutil")
    monkeypatch.setattr(process, "PROC", tmp_path / "none")
    monkeypatch.setattr(process.uuid, "getnode", lambda: 0x001122334455)
    own = ProcessIdentity.own()
    assert (own.machine, own.boot_id, own.pid_namespace) == ("001122334455", "", "")
    assert own.process_started
    assert not own.is_known_dead()
    assert replace(own, process_started="1.0").is_known_dead()
    assert replace(own, pid="4194303").is_known_dead()
    # a made-up address tells nothing
    monkeypatch.setattr(process.uuid, "getnode", lambda: 0x010000000000)
    assert not replace(own, machine="", pid="4194303").is_known_dead()
