"""What the tests share: one Spark session on a lake of their own."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from artemis import PACKAGES as ARTEMIS
from artemis import ArtemisBroker, running_artemis
from dbt_runs import TARGET
from kafka_broker import PACKAGES as KAFKA
from kafka_broker import KafkaBroker, running_kafka
from maven import jars_of
from postgres import Postgres, find_programs, running_postgres
from pyspark.sql import SparkSession
from rabbitmq import RabbitMqBroker, find_server, running_rabbitmq
from sqs_server import SqsServer, running_sqs

from dbt_exactly_once.adapter.session import Project, find_project, open_session, read_credentials
from dbt_exactly_once.adapter.startup import expect_many_small_runs

PROJECT_FOLDER = Path(__file__).parents[2]
# with the processes and servers that its tests start
MEMORY_OF_A_WORKER = 6 * 2**30
# these take minutes, some with few tests: one that began last would be left alone on one core
LONGEST = (
    "test_torture.py",
    "test_loop.py",
    "test_targets.py",
    "test_rest_catalog.py",
    "test_landed_rows.py",
    "test_upkeep.py",
    "test_report.py",
    "test_feeds.py",
    "test_wheel.py",
    "test_thrift.py",
    "test_resolvers.py",
    "test_agreement.py",
    "test_worker.py",
    "test_half_runs.py",
    "test_transaction.py",
    "test_faults.py",
    "test_model_services.py",
    "test_invariants.py",
    "test_story.py",
    "test_docs.py",
    "test_clocks.py",
)
# kills, servers, brokers, clusters, days of many runs, and whole texts: what `make test-all` runs
# besides
LONG = (
    "test_alert.py",
    "test_brokers.py",
    "test_clocks.py",
    "test_conditions_of_a_run.py",
    "test_engine.py",
    "test_example.py",
    "test_executions.py",
    "test_explain.py",
    "test_faults.py",
    "test_feeds.py",
    "test_half_runs.py",
    "test_hostile_input.py",
    "test_import_history.py",
    "test_kafka.py",
    "test_landed_rows.py",
    "test_loop.py",
    "test_migrate.py",
    "test_model_services.py",
    "test_ordinary_failures.py",
    "test_other_readers.py",
    "test_preview.py",
    "test_processed_once.py",
    "test_quiet_runs.py",
    "test_rejected_landings.py",
    "test_report.py",
    "test_resolvers.py",
    "test_rest_catalog.py",
    "test_resubmission.py",
    "test_retired_triggers.py",
    "test_seed_pages.py",
    "test_send_errors.py",
    "test_session_settings.py",
    "test_sqs.py",
    "test_startup.py",
    "test_suspension.py",
    "test_targets.py",
    "test_thrift.py",
    "test_torture.py",
    "test_transaction.py",
    "test_upkeep.py",
    "test_views.py",
    "test_wheel.py",
    "test_worker.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--until",
        type=float,
        default=float("inf"),
        help="seconds since 1970: a test that could last longer is skipped",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """A worker for each core, where memory allows: with more, long tests meet their limits."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(max(1, min(os.cpu_count() or 1, memory // MEMORY_OF_A_WORKER)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest; pytest-xdist hands files out in this order.

    With a limit on every second day with those that come last else, and would never run.
    """
    for item in items:
        if item.path.name in LONG:
            item.add_marker("long")
    rank = {name: place for place, name in enumerate(LONGEST)}
    until = config.getoption("until")
    items.sort(
        key=lambda item: rank.get(item.path.name, len(LONGEST)),
        reverse=until < float("inf") and until // 86_400 % 2 == 1,
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no test, nor its fixtures, that could outlast the limit: it would lose all others."""
    own = item.get_closest_marker("timeout")
    longest = float(own.args[0] if own else item.config.getini("timeout"))
    if time.time() + longest > item.config.getoption("until"):
        pytest.skip("no time is left for it: `make test-long` runs it")


@pytest.fixture(scope="session")
def profiles_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a profiles.yml that is the project's example."""
    folder = tmp_path_factory.mktemp("profiles")
    shutil.copy(PROJECT_FOLDER / "profiles.example.yml", folder / "profiles.yml")
    return folder


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The place of the shared session's lake."""
    folder = tmp_path_factory.mktemp("lake")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXACTLY_ONCE_LAKE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def spark(profiles_dir: Path, lake: Path) -> Iterator[SparkSession]:
    """One session for all tests, as the profile describes it."""
    assert os.environ["EXACTLY_ONCE_LAKE"] == str(lake)
    credentials = read_credentials(find_project(PROJECT_FOLDER), profiles_dir, TARGET)
    parameters = credentials.server_side_parameters
    if TARGET == "local":
        # it lives for many runs; those with another target are few
        expect_many_small_runs(parameters)
    session = open_session(credentials)
    yield session
    session.stop()


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of this test's own."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    with running_postgres(programs) as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMqBroker]:
    """A RabbitMQ broker for all tests; each takes a queue of its own."""
    program = find_server()
    if program is None:
        pytest.skip("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    with running_rabbitmq(program, tmp_path_factory.mktemp("rabbitmq") / "broker") as broker:
        yield broker


@pytest.fixture(scope="session")
def artemis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtemisBroker]:
    """A JMS provider for all tests; each takes a queue of its own."""
    pytest.importorskip("proton", reason="python-qpid-proton is not installed: the extra amqp")
    jars = jars_of(ARTEMIS)
    if not jars:
        pytest.skip("ActiveMQ Artemis cannot be fetched from Maven Central")
    with running_artemis(jars, tmp_path_factory.mktemp("artemis")) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_jars() -> list[str]:
    """What a Kafka broker is started from."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: extra kafka")
    jars = jars_of(KAFKA)
    if not jars:
        pytest.skip("Kafka cannot be fetched from Maven Central")
    return jars


@pytest.fixture(scope="session")
def kafka(kafka_jars: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A Kafka broker for all tests; each takes a topic of its own."""
    with running_kafka(kafka_jars, tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[SqsServer]:
    """A server that speaks as Amazon SQS does."""
    pytest.importorskip("boto3", reason="boto3 is not installed: the extra sqs")
    pytest.importorskip("moto.server", reason="moto's server is not installed: moto[server]")
    with running_sqs(monkeypatch) as server:
        yield server


@pytest.fixture
def project() -> Project:
    """The project, with a landing schema that no other test has."""
    variables = {"landing_schema": f"landing_{uuid4().hex[:12]}"}
    return Project(PROJECT_FOLDER, variables, PROJECT_FOLDER)


@pytest.fixture
def rows(spark: SparkSession) -> Callable[[str], list[tuple[object, ...]]]:
    """Runs a query and gives plain tuples."""
    return lambda sql: [tuple(row) for row in spark.sql(sql).collect()]
