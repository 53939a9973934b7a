"""What goes wrong on an ordinary day is one line that says what, where and what to do."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from dbt_runs import PROJECT_FOLDER, DbtRuns
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dbt_exactly_once import cli
from dbt_exactly_once.adapter.lake import ensure_place
from dbt_exactly_once.adapter.session import (
    Project,
    find_project,
    parse_graph,
    read_credentials,
)
from dbt_exactly_once.adapter.startup import check_java
from dbt_exactly_once.commands import place
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.rabbitmq import RabbitMq, RabbitMqPublisher

INSTALL_JAVA = (
    "apt-get install openjdk-17-jre-headless, or brew install openjdk@17, or set JAVA_HOME to one"
)


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    file = tmp_path / "feed.jsonl"
    file.write_text('{"delivery_id": "a"}\n')
    return file


def said_by_command(*arguments: object, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command says when it fails."""
    capsys.readouterr()
    assert cli.main([str(argument) for argument in arguments]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err.rstrip("\n")


# ---------- Java


def java_of(folder: Path, release: str | None) -> str:
    """A JAVA_HOME with a Java of some version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("")
    if release is not None:
        (folder / "release").write_text(release)
    return str(folder)


def test_a_java_that_spark_does_not_start_with_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> str:
        with pytest.raises(ExactlyOnceError) as error:
            check_java()
        return error.value.msg

    needed = "exactly_once: Spark needs Java 17 or later, and"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert told() == (
        f"{needed} JAVA_HOME is {tmp_path}/nowhere, which has no bin/java: {INSTALL_JAVA}"
    )
    for name, version, release in (("11", 11, 'JAVA_VERSION="11.0.2"'), ("8", 8, "1.8.0_392")):
        text = release if "=" in release else f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n'
        monkeypatch.setenv("JAVA_HOME", java_of(tmp_path / name, text))
        assert told() == f"{needed} {tmp_path}/{name}/bin/java is Java {version}: {INSTALL_JAVA}"
    for name, release in (
        ("17", 'JAVA_VERSION="17"\n'),
        ("25", 'JAVA_VERSION="25.0.1"\n'),
        ("unknown", None),
    ):
        monkeypatch.setenv("JAVA_HOME", java_of(tmp_path / name, release))
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert told() == f"{needed} there is no Java here: {INSTALL_JAVA}"


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "dbt_exactly_once.cli", "land", "FEED"],
        ["-c", "from dbt.cli.main import cli; cli()", "build"],
    ],
    ids=["land", "dbt build"],
)
def test_without_java_the_command_says_so_and_no_more(
    command: list[str], feed: Path, profiles_dir: Path, tmp_path: Path
) -> None:
    runs = subprocess.run(
        [
            sys.executable,
            *(str(feed) if part == "FEED" else part for part in command),
            f"--project-dir={PROJECT_FOLDER}",
            f"--profiles-dir={profiles_dir}",
            *([f"--log-path={tmp_path}", f"--target-path={tmp_path}"] if "-c" in command else []),
        ],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "JAVA_HOME": str(tmp_path),
            "EXACTLY_ONCE_LAKE": str(tmp_path / "lake"),
            "PYTHONPATH": str(PROJECT_FOLDER),
        },
        check=False,
    )
    assert runs.returncode != 0
    said = runs.stdout + runs.stderr
    line = (
        f"Spark needs Java 17 or later, and JAVA_HOME is {tmp_path}, which has no bin/java: "
        f"{INSTALL_JAVA}"
    )
    assert said.count(line) == 1
    assert said.rstrip().endswith(line), "nothing comes after it"
    assert "Traceback" not in said
    assert "JAVA_GATEWAY" not in said


# ---------- the profile and the catalog


def test_a_wrong_profile_is_told(
    feed: Path, profiles_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(folder: Path, *more: str) -> str:
        place = ("--project-dir", PROJECT_FOLDER, "--profiles-dir", folder)
        return said_by_command("land", feed, *place, *more, capsys=capsys)

    nothing = tmp_path / "nothing"
    assert told(nothing) == (
        f"exactly-once: there is no {nothing}/profiles.yml, which says how Spark starts and where "
        "the lake is: copy profiles.example.yml there, or name its folder with --profiles-dir"
    )
    other = tmp_path / "other"
    other.mkdir()
    text = (profiles_dir / "profiles.yml").read_text()
    (other / "profiles.yml").write_text(text.replace("\nexactly_once:", "\nshop:"))
    assert told(other) == (
        f"exactly-once: {other}/profiles.yml: Could not find profile named 'exactly_once', which "
        "dbt_project.yml asks for; it has shop"
    )
    assert told(profiles_dir, "--target", "nowhere") == (
        f"exactly-once: {profiles_dir}/profiles.yml: The profile 'exactly_once' does not have a "
        "target named 'nowhere'. The valid target names for this profile are: - local - cluster "
        "- thrift - warehouse - rest"
    )


def test_the_profile_of_dbt_profile_is_taken_as_dbt_takes_it(
    feed: Path,
    profiles_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    profile = yaml.safe_load((profiles_dir / "profiles.yml").read_text())
    profile["shop"] = {
        "target": "own",
        "outputs": {"own": {**profile["exactly_once"]["outputs"]["local"], "schema": "shop"}},
    }
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profile))
    project = find_project(PROJECT_FOLDER)
    for name, schema in (("shop", "shop"), ("", "exactly_once")):
        monkeypatch.setenv("DBT_PROFILE", name)
        assert read_credentials(project, tmp_path).schema == schema
    monkeypatch.setenv("DBT_PROFILE", "none")
    place = ("--project-dir", PROJECT_FOLDER, "--profiles-dir", tmp_path)
    assert said_by_command("land", feed, *place, capsys=capsys) == (
        f"exactly-once: {tmp_path}/profiles.yml: Could not find profile named 'none', which "
        "DBT_PROFILE asks for; it has exactly_once, shop"
    )


def test_dbt_parses_with_the_profile_that_the_command_has_read(
    profiles_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one beside the project; by itself dbt looks in the current folder."""
    folder, elsewhere = tmp_path / "shop", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "dbt_project.yml").write_text("name: exactly_once\nprofile: exactly_once\n")
    (folder / "profiles.yml").write_text((profiles_dir / "profiles.yml").read_text())
    (elsewhere / "profiles.yml").write_text("other: {}\n")
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    assert parse_graph(Project(folder, {}, folder))["nodes"] == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"name: [shop", " cannot be read, correct it: while parsing a flow sequence"),
        (b"name: sh\xf6p", " cannot be read, correct it: 'utf-8' codec can't decode byte"),
        (b"name: 2026-13-01", " cannot be read, correct it: month must be in 1..12"),
        (b"- shop", " is no mapping, as lines like `name: shop` are: correct it"),
        (b"", " does not have the package exactly_once: name it in packages.yml"),
    ],
)
def test_a_broken_project_file_is_told(
    content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dbt_project.yml"
    file.write_bytes(content)
    said = said_by_command("migrate", "--project-dir", tmp_path, capsys=capsys)
    where = file if "correct" in told else tmp_path
    assert said.startswith(f"exactly-once: {where}{told}")


def test_a_spark_that_does_not_start_is_told_in_a_line(tmp_path: Path) -> None:
    """In a process of its own, since the tests have a Spark."""
    log = tmp_path / "logs" / "spark.log"
    parameters = {"spark.master": "local[1]", "spark.driver.bindAddress": "203.0.113.1"}
    start = (
        "from dbt.adapters.spark.connections import SparkCredentials\n"
        "from dbt_exactly_once.adapter.session import Path, open_session\n"
        f"open_session(SparkCredentials(method='session', schema='s', host='h', "
        f"server_side_parameters={parameters}), Path({str(log)!r}))"
    )
    ended = subprocess.run([sys.executable, "-c", start], capture_output=True, check=False)
    *_, said = ended.stderr.decode().splitlines()
    assert f"Spark did not start, {log} has all of it: " in said
    assert "Can't assign requested address" in said or "Cannot assign requested address" in said
    # nothing of Java's is on the screen
    assert b"WARN" not in ended.stdout + ended.stderr
    assert "WARN" in log.read_text(encoding="utf-8")


def test_a_loop_without_a_service_is_refused_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(place, "open_session", lambda *_: pytest.fail("Spark was started"))
    said = said_by_command("run", "--work", "--project-dir", PROJECT_FOLDER, capsys=capsys)
    assert said.startswith("exactly-once: no module of python_udfs registers a service: ")
    assert said.endswith("; leave out --work where all services are models")


def test_a_catalog_of_an_unknown_type_is_told_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(ExactlyOnceError) as error:
        ensure_place({"spark.sql.catalog.lake.type": "jdcb"})
    assert error.value.msg == (
        "exactly_once: profiles.yml: spark.sql.catalog.lake.type is jdcb, Iceberg knows bigquery, "
        "glue, hadoop, hive, jdbc, nessie, rest"
    )
    ensure_place({"spark.sql.catalog.lake.type": "REST", "spark.sql.catalog.lake.uri": "http://x"})


# ---------- brokers


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["land", "--rabbitmq", "amqp://localhost", "--queue", "orders"],
            "exactly-once: pika is needed to talk to RabbitMQ: "
            "pip install 'dbt-exactly-once[rabbitmq]'",
        ),
        (
            ["land", "--amqp", "amqp://localhost", "--queue", "orders"],
            "exactly-once: python-qpid-proton is needed to talk over AMQP 1.0: "
            "pip install 'dbt-exactly-once[amqp]'",
        ),
        (
            ["land", "--kafka", "localhost", "--topic", "orders", "--group", "lake"],
            "exactly-once: confluent-kafka is needed to talk to Kafka: "
            "pip install 'dbt-exactly-once[kafka]'",
        ),
        (
            ["land", "--sqs", "https://sqs.eu-central-1.amazonaws.com/1/orders"],
            "exactly-once: boto3 is needed to talk to SQS: pip install 'dbt-exactly-once[sqs]'",
        ),
        (
            ["send-errors", "--rabbitmq", "amqp://localhost"],
            "exactly-once: pika is needed to talk to RabbitMQ: "
            "pip install 'dbt-exactly-once[rabbitmq]'",
        ),
        (
            ["worker", "--send-errors-amqp", "amqp://localhost"],
            "exactly-once: python-qpid-proton is needed to talk over AMQP 1.0: "
            "pip install 'dbt-exactly-once[amqp]'",
        ),
        (
            ["report"],
            "exactly-once: matplotlib is needed to draw the charts of the report: "
            "pip install 'dbt-exactly-once[report]'",
        ),
    ],
)
def test_what_is_not_installed_is_told_before_spark_starts(
    arguments: list[str],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in ("pika", "proton", "confluent_kafka", "boto3", "matplotlib"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(place, "open_session", lambda *_: pytest.fail("Spark was started"))
    assert said_by_command(*arguments, "--project-dir", PROJECT_FOLDER, capsys=capsys) == line


def test_a_broker_that_is_down_is_told_with_its_cause(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pika")
    for url, where, cause in (
        ("amqp://me:secret@127.0.0.1:1/x", "127.0.0.1:1/x", "Connection refused"),
        (
            "amqp://me:secret@no-such-host.invalid",
            "no-such-host.invalid",
            "Name or service not known",
        ),
        ("orders", "orders", "the URL has to begin with amqp:// or amqps://"),
    ):
        with pytest.raises(ExactlyOnceError) as error:
            RabbitMq(url, "orders", 1)
        assert error.value.msg == (
            f"queue orders of RabbitMQ at {where} cannot be taken from: {cause}"
        )
        with pytest.raises(ExactlyOnceError) as error:
            RabbitMqPublisher(url, "")
        assert error.value.msg == f"RabbitMQ at {where} cannot be sent to: {cause}"
    assert capfd.readouterr() == ("", ""), "no traceback of the client's"


# ---------- quiet


def test_quiet_is_quiet(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> None:
    """A dbt that starts a Spark of its own says nothing on the screen."""
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    assert runs.start("seed", "--quiet").wait(timeout=300) == 0
    assert runs.said() == ""
    assert runs.rows("select count(*) > 0 from {schema}.triggers") == [(True,)]


def _hang_up(server: socket.socket) -> None:
    """Close each connection; Py4J asks again where the first one ends without an answer."""
    with suppress(OSError):
        while True:
            server.accept()[0].close()


def test_a_java_that_has_ended_fills_no_log(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Py4J logs by the root's logger what it raises, whoever asks: even Python's own collector."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=server.getsockname()[1]))
        threading.Thread(target=_hang_up, args=(server,), daemon=True).start()
        with pytest.raises(Py4JError):
            gateway.jvm.java.lang.System.nanoTime()
    assert caplog.messages == []
    logging.getLogger().warning("of a user's function")
    logging.getLogger("shop").warning("of another one")
    assert caplog.messages == ["of a user's function", "of another one"]
