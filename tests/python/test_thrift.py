"""Over Thrift the project decides the same, and nobody sees what a run has not published."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import psutil
import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns, failures
from pyspark.sql import SparkSession
from test_agreement import assert_agreement, seeded
from test_feeds import demo_feed, statuses
from test_transaction import delivery, leftovers, process, take_lock
from thrift_servers import ThriftServer, free_port, thrift_server

from dbt_exactly_once import thrift_server as served
from dbt_exactly_once.adapter.shared_session import INLINE_SETTING
from dbt_exactly_once.cli import main
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.process import ProcessIdentity

BRANCH = "spark.wap.branch"
ONE_TEST = ("--select", "a_delivery_is_decided_once_in_all_runs")


@pytest.fixture(scope="module")
def server(spark: SparkSession, profiles_dir: Path, lake: Path) -> Iterator[ThriftServer]:
    """The server that dbt uses, on the lake of the shared session."""
    with thrift_server(profiles_dir, lake) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXACTLY_ONCE_THRIFT_PORT", str(found.port))
        yield found


@pytest.fixture
def runs(server: ThriftServer, spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    """dbt over Thrift; the shared session lands and reads."""
    return DbtRuns(spark, profiles_dir, tmp_path, target="thrift")


def setting_of_session(server: ThriftServer, name: str) -> str:
    return server.rows(f"set `{name}`")[0][1]


def branch_of_session(server: ThriftServer) -> str:
    return setting_of_session(server, BRANCH)


def test_a_piece_of_the_demo_feed_is_built_over_thrift(runs: DbtRuns) -> None:
    runs.land("deliveries", demo_feed()[:300])
    runs.run("build", "--exclude-resource-type", "unit_test")
    assert statuses(runs, "orders_by_history") == {
        ("NEW", "R07"): 288,
        ("DUPLICATE", "R09"): 2,
        ("NOT_CHECKED", "R01"): 10,
    }
    assert statuses(runs, "orders_by_count") == {
        ("NEW", "R03"): 288,
        ("IN_DOUBT", "R05"): 2,
        ("NOT_CHECKED", "R01"): 10,
    }


def test_random_feeds_are_decided_over_thrift_as_the_reference_model_decides_them(
    runs: DbtRuns,
) -> None:
    assert_agreement(seeded(52), runs)


def test_a_killed_client_leaves_nothing_to_the_next_and_a_reader_sees_published_rows_only(
    runs: DbtRuns, server: ThriftServer, profiles_dir: Path, lake: Path, tmp_path: Path
) -> None:
    count = f"select count(*) from {runs.schema}.document_status"
    branches = f"select name from {runs.schema}.document_status.refs where name like 'run%'"
    runs.run("seed")
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    runs.land("deliveries", [delivery(2), delivery(3, uuid="u2")])
    with thrift_server(profiles_dir, lake, "--readers") as readers:
        log = tmp_path / "killed.log"
        with log.open("w") as file:
            killed = subprocess.Popen(
                [Path(sys.executable).parent / "dbt", "run", "--project-dir", runs.folder],
                cwd=PROJECT_FOLDER,
                env={**os.environ, "DBT_PROFILES_DIR": str(runs.folder)},
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        deadline = time.monotonic() + 300
        while not readers.rows(branches):
            assert killed.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, "the run wrote no branch"
            assert readers.rows(count) == [(2,)]
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()

        left = branch_of_session(server)
        assert left.startswith("run_"), "a killed client cannot tidy up"
        assert setting_of_session(server, INLINE_SETTING) == "true"
        assert readers.rows(count) == [(2,)]
        assert readers.rows(f"set `{BRANCH}`")[0][1] == "<undefined>"

        # 18.17: nor does a reader's session, or dbt's own, replace what stands in a text
        for client in (readers, server):
            assert client.rows("select '${env:HOME}'") == [("${env:HOME}",)]
        # as a server that was started by other means has it
        server.rows("set spark.sql.variable.substitute=true")

        runs.run("test", *ONE_TEST)
        assert branch_of_session(server) == "<undefined>"
        assert setting_of_session(server, INLINE_SETTING) == "false"
        assert server.rows("select '${env:HOME}'") == [("${env:HOME}",)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EXACTLY_ONCE_THRIFT_PORT", str(readers.port))
            assert "a session of its own" in failures(runs.dbt("run"))[0]
        runs.decide()
        assert readers.rows(count) == [(6,)]
        assert leftovers(runs) == []


def test_a_client_does_not_read_the_branch_of_a_run_at_work(
    runs: DbtRuns, server: ThriftServer
) -> None:
    runs.run("seed")
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    now = datetime.now(timezone.utc)
    take_lock(runs, ProcessIdentity.own(), now)
    server.rows(f"set `{BRANCH}`=run_00000000_dead")
    server.rows(f"set `exactly_once.lock_schema`={runs.schema}")
    (told,) = failures(runs.dbt("test", *ONE_TEST))[:1]
    assert "run 00000000-dead is at work in the session of this Thrift server" in told
    (told,) = failures(runs.dbt("run"))[:1]
    assert "run 00000000-dead is at work since" in told
    assert branch_of_session(server) == "run_00000000_dead", "it is the other run's"

    runs.spark.sql(f"drop table {runs.schema}.run_lock")
    take_lock(runs, process(pid=2**22 + 5), now)
    runs.run("test", *ONE_TEST)
    assert branch_of_session(server) == "<undefined>"
    runs.decide()


def test_a_server_with_other_functions_is_refused(runs: DbtRuns) -> None:
    runs.run("seed")
    runs.add_udfs("answer_in_document")
    (told,) = failures(runs.dbt("run"))[:1]
    (line,) = [line for line in told.splitlines() if "exactly_once" in line]
    assert "python_udfs is not what the Thrift server has loaded" in line
    assert "start `exactly-once thrift-server` again" in line


def test_a_server_is_not_opened_to_others_by_mistake(
    profiles_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--project-dir", str(PROJECT_FOLDER), "--profiles-dir", str(profiles_dir)]
    command = ["thrift-server", *place, "--target", "local", "--port"]
    free = str(free_port())
    assert main([*command, free, "--host", "0.0.0.0"]) == 1
    assert "whoever reaches it can read and write the lake" in capsys.readouterr().err
    for host in ("no-such-host.invalid", "no..host"):
        assert main([*command, free, "--host", host]) == 1
        assert capsys.readouterr().err == (
            f"exactly-once: no machine is known as {host}: name an address of this one with "
            "--host\n"
        )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main([*command, str(taken.getsockname()[1])]) == 1
    assert "cannot be listened on" in capsys.readouterr().err


def test_a_server_waits_for_a_signal_and_for_no_java_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served, "LOOK_SECONDS", 0.01)
    stop = threading.Event()
    with subprocess.Popen(["sleep", "60"]) as java:
        threading.Timer(0.1, stop.set).start()
        served._wait_for_end(stop, java)
        java.kill()
        java.wait()
        stop.clear()
        with pytest.raises(ExactlyOnceError, match="Spark is gone: "):
            served._wait_for_end(stop, java)


def test_the_version_of_a_lake_is_looked_up_where_its_ledgers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project with this one as its package has them in a schema of their own."""
    folder = tmp_path / "shop"
    assert main(["init", str(folder)]) == 0
    asked: list[str] = []
    monkeypatch.setattr(served, "serve", lambda *given: asked.append(given[2]))
    place = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    assert main(["thrift-server", *place, "--port", str(free_port())]) == 0
    assert asked == ["exactly_once_ledgers"]


def test_a_server_ends_cleanly_at_ctrl_c_and_with_its_java(profiles_dir: Path, lake: Path) -> None:
    with thrift_server(profiles_dir, lake, "--readers") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        assert server.said().splitlines()[-1].endswith("Ctrl-C ends it")
    with thrift_server(profiles_dir, lake, "--readers") as server:
        children = psutil.Process(server.process.pid).children()
        (java,) = [child for child in children if child.name() == "java"]
        java.kill()
        assert server.process.wait(60) == 1
        assert "\nexactly-once: Spark is gone: " in server.said()
        assert "Traceback" not in server.said()
