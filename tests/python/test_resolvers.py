"""Resolvers in real runs: what they are asked about, and what becomes of it without an answer."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest
from dbt_runs import DbtRuns, failures
from postgres import Postgres
from pyspark.sql import SparkSession
from reference_model import Command, Delivery

EXAMPLES = Path(__file__).parents[2] / "python_udfs" / "examples"
NOON = datetime(2024, 3, 1, 12, 0, tzinfo=timezone.utc)
# a count-only trigger asks about what is no first delivery, one with history about what was begun
COUNTING = """
from pathlib import Path
from python_udfs import Delivery, TransientError, resolver, resource_monitor

HERE = Path("FOLDER")

def note(what):
    with (HERE / "calls").open("a") as file:
        file.write(what + "\\n")

@resolver("orders.check")
def check(delivery: Delivery):
    note(delivery.event_id)
    answer = delivery.document
    if answer == "DOWN" and not (HERE / "up").exists():
        raise TransientError("orders database is down")
    if answer == "SLOW":
        import time
        while not (HERE / "quick").exists():
            time.sleep(0.2)
        return "NEW"
    if answer == "HANG":
        import time
        time.sleep(600)
    if answer == "DIE":
        import os
        os._exit(9)
    return "NEW" if answer == "DOWN" else answer

@resource_monitor("orders.up")
def up():
    note("monitor")
    return (HERE / "up").exists()
"""


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    return with_resolvers(spark, profiles_dir, tmp_path)


def with_resolvers(spark: SparkSession, profiles_dir: Path, folder: Path) -> DbtRuns:
    runs = DbtRuns(spark, profiles_dir, folder)
    runs.add_udfs("orders", COUNTING)
    return runs


def calls(runs: DbtRuns) -> list[str]:
    path = runs.folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def configure(runs: DbtRuns, resolver: str = "orders.check", **settings: Any) -> None:
    """One trigger with a resolver; it counts, unless settings say more."""
    configure_all(runs, {"orders": {"resolver": resolver, **settings}})


def configure_all(runs: DbtRuns, triggers: Mapping[str, Mapping[str, Any]]) -> None:
    """Triggers with settings of their own, each for documents of a type of its own."""
    shared = {
        "detect_duplicates": True,
        "resolver": "orders.check",
        "processing_mode": "concurrent",
    }
    runs.seed(
        "triggers",
        [{"trigger_name": name, **shared, **settings} for name, settings in triggers.items()],
    )
    runs.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": name,
                "position": 1,
                "condition_name": "all",
                "document_type": f"{name}:placed",
            }
            for name in triggers
        ],
    )
    runs.run("seed")


def delivery(
    name: str, count: int = 1, answer: str | None = "NEW", trigger: str = "orders", **values: Any
) -> Delivery:
    given = {
        "delivery_id": name,
        "received_at": NOON,
        "landed_at": NOON,
        "document_type": f"{trigger}:placed",
        "uuid": name,
        "event_id": name,
        "redelivery_count": count,
        "document": answer,
    }
    return Delivery(**(given | values))


def statuses(runs: DbtRuns) -> dict[str, tuple[Any, ...]]:
    rows = runs.rows(
        "select delivery_id, rule_id, status, resolver_result, message "
        "from {schema}.document_status"
    )
    return {row[0]: row[1:] for row in rows}


def waiting(runs: DbtRuns) -> dict[str, str]:
    return dict(runs.rows("select delivery_id, reason from {schema}.waiting_deliveries"))


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


@dataclass
class Asked:
    """What two runs have decided and whom they have asked, each run for itself."""

    rows: int
    statuses: dict[str, tuple[Any, ...]]
    calls: list[str]
    calls_without_candidates: list[str]


@pytest.fixture(scope="module")
def asked(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Asked:
    runs = with_resolvers(spark, profiles_dir, tmp_path_factory.mktemp("asked"))
    configure_all(runs, {"orders": {}, "wrong": {}})
    answers = {
        "wrong word": "perhaps",
        "null": None,
        "transient": "DOWN",
        "duplicate": "DUPLICATE",
    }
    runs.land(
        "deliveries",
        [
            *(delivery(f"d{n}", count=int(n % 1000 == 0)) for n in range(3000)),
            *(delivery(name, answer=said, trigger="wrong") for name, said in answers.items()),
        ],
    )
    runs.decide(clock=at(1))
    before = calls(runs)
    runs.land("deliveries", [delivery("first", count=0)])
    runs.decide(clock=at(2))
    ((rows,),) = runs.rows("select count(*) from {schema}.document_status")
    return Asked(rows, statuses(runs), before, calls(runs)[len(before) :])


def test_one_in_a_thousand_is_asked_about_and_none_else(asked: Asked) -> None:
    rules = {f"d{n}": asked.statuses[f"d{n}"][0] for n in range(3000)}
    asked_about = [name for name, rule in rules.items() if rule == "R06a"]
    assert asked_about == ["d0", "d1000", "d2000"]
    assert Counter(rules.values()) == {"R03": 2997, "R06a": 3}
    assert Counter(name for name in asked.calls if name in rules) == Counter(asked_about)


def test_a_run_without_candidates_asks_nobody_and_keeps_no_answers(asked: Asked) -> None:
    assert asked.calls_without_candidates == []
    assert asked.statuses["first"][:2] == ("R03", "NEW")


def test_every_wrong_answer_is_in_doubt_and_says_why(asked: Asked) -> None:
    words = "not one of NEW, DUPLICATE, IN_DOUBT"
    wanted = {
        "wrong word": ("R06g", "IN_DOUBT", "INVALID", f"answered 'perhaps', {words}"),
        "null": ("R06g", "IN_DOUBT", "INVALID", f"answered None, {words}"),
        "transient": (
            "R06e",
            "IN_DOUBT",
            "TRANSIENT_ERROR",
            "TransientError: orders database is down",
        ),
        "duplicate": ("R06b", "DUPLICATE", "DUPLICATE", None),
    }
    assert {name: asked.statuses[name] for name in wanted} == wanted
    assert asked.rows == len(asked.statuses) == 3000 + len(wanted) + 1
    assert Counter(asked.calls) == Counter(["d0", "d1000", "d2000", *wanted])


def test_a_trigger_that_is_suspended_asks_again_once_it_is_resumed(runs: DbtRuns) -> None:
    suspends = {"suspend_on_preprocessing_error": True}
    triggers = ("monitored", "operated")
    configure_all(
        runs,
        {
            "monitored": {**suspends, "resource_monitor": "orders.up"},
            "operated": {**suspends, "resource_monitor": "none"},
        },
    )
    runs.land("deliveries", [delivery(name, answer="DOWN", trigger=name) for name in triggers])
    runs.decide(clock=at(1))
    assert waiting(runs) == dict.fromkeys(triggers, "SUSPENDED")
    assert runs.rows(
        "select trigger_name, is_suspended, suspended_cause, suspended_by, suspended_reason "
        "from {schema}.trigger_states order by 1"
    ) == [
        (name, True, "RESOLVER_ERROR", name, "TransientError: orders database is down")
        for name in triggers
    ]

    runs.land(
        "deliveries", [delivery(f"{name}, later", count=0, trigger=name) for name in triggers]
    )
    runs.decide(clock=at(2))
    both = [*triggers, *(f"{name}, later" for name in triggers)]
    assert waiting(runs) == dict.fromkeys(both, "SUSPENDED")

    # the monitor says that the resource is there; nobody says it to the other trigger
    (runs.folder / "up").touch()
    runs.decide(clock=at(4))
    assert waiting(runs) == {"operated": "SUSPENDED", "operated, later": "SUSPENDED"}
    monitored = {"monitored": "R06a", "monitored, later": "R03"}
    assert {name: row[0] for name, row in statuses(runs).items()} == monitored

    runs.land("trigger_commands", [Command("c1", "operated", "RESUME", at(5), "me")])
    runs.decide(clock=at(6))
    assert waiting(runs) == {}
    assert {name: row[0] for name, row in statuses(runs).items()} == {
        **monitored,
        "operated": "R06a",
        "operated, later": "R03",
    }
    assert Counter(calls(runs)) == {"monitored": 2, "operated": 2, "monitor": 2}
    suspended = "RESOLVER_ERROR: {}: TransientError: orders database is down"
    resumed = "the trigger takes deliveries again"
    for name in triggers:
        assert runs.rows(
            "select event, message from {schema}.journal_entries "
            f"where trigger_name = '{name}' order by happened_at"
        ) == [("SUSPENDED", suspended.format(name)), ("RESUMED", resumed)]
    assert runs.rows("select count(*) from {schema}.journal_entries") == [(2 * len(triggers),)]


def test_a_trigger_that_a_run_without_landings_suspends_is_asked_for_no_more(
    runs: DbtRuns,
) -> None:
    """The run that suspends it publishes that, the next one what waits, and later ones nothing."""
    configure(runs, suspend_on_preprocessing_error=True, queue_capacity=1)
    runs.land("deliveries", [delivery("a", count=0), delivery("b", answer="DOWN")])
    published = []
    for minute in range(1, 6):
        runs.decide(clock=at(minute))
        published += runs.rows("select count(*) from {schema}.published_runs")
    assert [row[0] for row in published] == [1, 2, 3, 3, 3]
    assert waiting(runs) == {"b": "SUSPENDED"}
    assert calls(runs) == ["b"]
    assert runs.rows(
        "select is_suspended, took_documents, suspended_by from {schema}.trigger_states"
    ) == [(True, False, "b")]


def test_a_resolver_that_hangs_costs_its_limit_a_few_times_and_the_rest_waits(
    runs: DbtRuns,
) -> None:
    configure(runs)
    runs.land("deliveries", [delivery(f"d{number}", answer="HANG") for number in range(8)])
    variables = {"resolver_timeout_ms": 300, "resolver_tasks": 1}
    runs.decide(clock=at(1), variables=variables)
    assert len(calls(runs)) == 3
    decided = statuses(runs)
    assert [row[:3] for row in decided.values()] == [("R06e", "IN_DOUBT", "TRANSIENT_ERROR")] * 3
    assert {row[3] for row in decided.values()} == {"TimeoutError: no answer within 0.3 s"}
    assert sorted(waiting(runs).values()) == ["RESOLVER_DOWN"] * 5


def test_a_resolver_that_ends_its_worker_is_named_and_its_delivery_can_be_held(
    runs: DbtRuns,
) -> None:
    configure(runs)
    runs.land("deliveries", [delivery("good"), delivery("deadly", answer="DIE")])
    result = runs.dbt("run", "--select", "tag:transaction", clock=at(1))
    assert not result.success
    (message,) = [said for said in failures(result) if "resolver_answers" in said]
    assert (
        "resolver orders.check of trigger orders ended the process that asked it about deadly"
        in message
    )
    assert 'hold_delivery --args \'{"delivery_id": "deadly", "trigger_name": "orders"}\'' in message
    assert statuses(runs) == {}

    named = {"delivery_id": "deadly", "trigger_name": "orders"}
    runs.run("run-operation", operation="hold_delivery", arguments_of_operation=named)
    runs.decide(clock=at(2))
    assert waiting(runs) == {"deadly": "HELD"}
    assert statuses(runs)["good"][0] == "R06a"

    runs.add_udfs("orders", COUNTING.replace("os._exit(9)", "return 'DUPLICATE'"))
    runs.run("run-operation", operation="release_delivery", arguments_of_operation=named)
    runs.decide(clock=at(3))
    assert waiting(runs) == {}
    assert statuses(runs)["deadly"][0] == "R06b"


def test_a_run_is_refused_where_a_name_is_not_registered_or_a_module_is_broken(
    runs: DbtRuns,
) -> None:
    configure(runs, resolver="orders.chekc")
    refused = runs.dbt("run", "--select", "tag:transaction", clock=at(1))
    assert (
        "seed triggers, trigger orders: resolver is orders.chekc, which no module of python_udfs "
        "registers: use examples.jms_delivery_count or examples.order_exists or "
        "examples.orders_exist or orders.check or none"
    ) in "\n".join(failures(refused))

    runs.add_udfs("broken", "import no_such_library")
    refused = runs.dbt("run", "--select", "tag:transaction", clock=at(1))
    assert "module python_udfs.broken cannot be used" in "\n".join(failures(refused))
    for command in ("parse", "ls"):
        assert runs.dbt(command).success


def test_the_shipped_examples_ask_a_real_database(runs: DbtRuns, postgres: Postgres) -> None:
    postgres.execute(
        "create table orders (number text primary key, created_at timestamp)",
        "insert into orders values ('A1', '2024-03-01 11:59:00')",
    )
    # workers import every module that a resolver's module names, and have no environment of ours
    folder = runs.folder / "python_udfs" / "copied"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "__init__.py").write_text(
        f"import os\nos.environ['ORDERS_DATABASE'] = {postgres.address!r}\n"
    )
    for module in folder.glob("*.py"):
        module.write_text(module.read_text().replace("examples", "copied"))
    triggers = ("order_exists", "orders_exist")
    configure_all(runs, {name: {"resolver": f"copied.{name}"} for name in triggers})
    answers = {
        "there": ('{"number": "A1"}', "R06b", "DUPLICATE"),
        "not there": ('{"number": "B2"}', "R06a", "NEW"),
        "no number": ("{}", "R06c", "IN_DOUBT"),
    }
    runs.land(
        "deliveries",
        [
            delivery(f"{name} {what}", answer=document, trigger=name)
            for name in triggers
            for what, (document, *_) in answers.items()
        ],
    )
    runs.decide(clock=at(1))
    assert {name: row[:2] for name, row in statuses(runs).items()} == {
        f"{name} {what}": (rule, status)
        for name in triggers
        for what, (_, rule, status) in answers.items()
    }

    def land(name: str, *whats: str) -> list[str]:
        names = [f"{name} {what}" for what in whats]
        asks = {"answer": '{"number": "A1"}', "trigger": name}
        runs.land("deliveries", [delivery(each, **asks) for each in names])
        return names

    unanswered = []
    for minute, name in enumerate(triggers, start=2):
        unanswered += land(name, "in flight", "next")
        with killed_while_it_answers(postgres):
            runs.decide(clock=at(minute))
        if name != triggers[-1]:
            postgres.start()
    for name in triggers:
        unanswered += land(name, "while down")
    runs.decide(clock=at(4))
    found = statuses(runs)
    assert len(found) == 2 * len(answers) + len(unanswered)
    for name in unanswered:
        rule, status, result, message = found[name]
        assert (rule, status, result) == ("R06e", "IN_DOUBT", "TRANSIENT_ERROR")
        assert message.startswith("TransientError: orders database: ")
    assert runs.rows("select count(*) from {schema}.document_status") == [(len(found),)]


@contextmanager
def killed_while_it_answers(postgres: Postgres) -> Iterator[None]:
    """Let the first query of orders wait for a lock, and end the server then."""
    waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"

    def kill() -> None:
        deadline = time.monotonic() + 300
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            while not connection.execute(waits).fetchall():
                assert time.monotonic() < deadline, "nobody has asked for an order"
                time.sleep(0.05)
        postgres.kill()

    with ThreadPoolExecutor(1) as pool:
        holder = psycopg.connect(postgres.address)
        holder.execute("lock table orders in access exclusive mode")
        killed = pool.submit(kill)
        yield
        killed.result(timeout=1)


def test_a_run_killed_while_it_asks_has_not_happened(runs: DbtRuns) -> None:
    configure(runs)
    names = [f"d{number}" for number in range(6)]
    runs.land("deliveries", [delivery(name, answer="SLOW") for name in names])
    runs.kill_when(runs.start("run"), lambda: bool(calls(runs)))
    assert runs.rows("select count(*) from {schema}.document_status") == [(0,)]
    assert runs.rows("select count(*) from {schema}.published_runs") == [(0,)]

    (runs.folder / "quick").touch()
    runs.decide(clock=at(1))
    assert {name: row[1] for name, row in statuses(runs).items()} == dict.fromkeys(names, "NEW")
    assert runs.rows("select count(*) from {schema}.document_status") == [(6,)]
