"""Resolvers in real runs: what they are asked about, and what becomes of it without an answer."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    runs.add_udfs("orders", COUNTING)
    return runs


def calls(runs: DbtRuns) -> list[str]:
    path = runs.folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def configure(runs: DbtRuns, resolver: str = "orders.check", **settings: Any) -> None:
    """One trigger with a resolver; it counts, unless settings say more."""
    trigger = {
        "trigger_name": "orders",
        "detect_duplicates": True,
        "resolver": resolver,
        "processing_mode": "concurrent",
    }
    runs.seed("triggers", [trigger | settings])
    runs.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": "orders",
                "position": 1,
                "condition_name": "all",
                "document_type": "orders:placed",
            }
        ],
    )
    runs.run("seed")


def delivery(name: str, count: int = 1, answer: str | None = "NEW", **values: Any) -> Delivery:
    given = {
        "delivery_id": name,
        "received_at": NOON,
        "landed_at": NOON,
        "document_type": "orders:placed",
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


def test_one_in_a_thousand_is_asked_about_and_none_else(runs: DbtRuns) -> None:
    configure(runs)
    runs.land("deliveries", [delivery(f"d{n}", count=int(n % 1000 == 0)) for n in range(3000)])
    runs.decide(clock=at(1))
    assert Counter(calls(runs)) == {"d0": 1, "d1000": 1, "d2000": 1}
    assert runs.rows(
        "select rule_id, count(*) from {schema}.document_status group by 1 order by 1"
    ) == [("R03", 2997), ("R06a", 3)]


def test_a_run_without_candidates_asks_nobody_and_keeps_no_answers(runs: DbtRuns) -> None:
    configure(runs)
    runs.land("deliveries", [delivery("first", count=0)])
    runs.decide(clock=at(1))
    assert calls(runs) == []
    assert statuses(runs)["first"][:2] == ("R03", "NEW")


def test_every_wrong_answer_is_in_doubt_and_says_why(runs: DbtRuns) -> None:
    configure(runs)
    runs.land(
        "deliveries",
        [
            delivery("wrong word", answer="perhaps"),
            delivery("null", answer=None),
            delivery("transient", answer="DOWN"),
            delivery("duplicate", answer="DUPLICATE"),
        ],
    )
    runs.decide(clock=at(1))
    words = "not one of NEW, DUPLICATE, IN_DOUBT"
    assert statuses(runs) == {
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


@pytest.mark.parametrize("resumed_by", ["monitor", "operator"])
def test_a_trigger_that_is_suspended_asks_again_once_it_is_resumed(
    resumed_by: str, runs: DbtRuns
) -> None:
    configure(
        runs,
        suspend_on_preprocessing_error=True,
        resource_monitor="orders.up" if resumed_by == "monitor" else "none",
    )
    runs.land("deliveries", [delivery("asked", answer="DOWN")])
    runs.decide(clock=at(1))
    assert waiting(runs) == {"asked": "SUSPENDED"}
    assert runs.rows(
        "select is_suspended, suspended_cause, suspended_by, suspended_reason "
        "from {schema}.trigger_states"
    ) == [(True, "RESOLVER_ERROR", "asked", "TransientError: orders database is down")]

    runs.land("deliveries", [delivery("later", count=0)])
    runs.decide(clock=at(2))
    assert waiting(runs) == {"asked": "SUSPENDED", "later": "SUSPENDED"}

    (runs.folder / "up").touch()
    if resumed_by == "operator":
        runs.land("trigger_commands", [Command("c1", "orders", "RESUME", at(3), "me")])
    runs.decide(clock=at(4))
    assert waiting(runs) == {}
    assert {name: row[0] for name, row in statuses(runs).items()} == {
        "asked": "R06a",
        "later": "R03",
    }
    monitored = ["monitor", "monitor"] if resumed_by == "monitor" else []
    assert Counter(calls(runs)) == Counter(["asked", "asked", *monitored])
    assert runs.rows(
        "select event, message from {schema}.journal_entries order by happened_at"
    ) == [
        ("SUSPENDED", "RESOLVER_ERROR: asked: TransientError: orders database is down"),
        ("RESUMED", "the trigger takes deliveries again"),
    ]


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
    assert "hold_delivery --args '{delivery_id: deadly, trigger_name: orders}'" in message
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


@pytest.mark.parametrize("resolver", ["examples.order_exists", "examples.orders_exist"])
def test_the_shipped_example_asks_a_real_database(
    resolver: str, runs: DbtRuns, postgres: Postgres
) -> None:
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
    configure(runs, resolver=resolver.replace("examples", "copied"))
    runs.land(
        "deliveries",
        [
            delivery("there", answer='{"number": "A1"}'),
            delivery("not there", answer='{"number": "B2"}'),
            delivery("no number", answer="{}"),
        ],
    )
    runs.decide(clock=at(1))
    found = {name: row[:2] for name, row in statuses(runs).items()}
    assert found == {
        "there": ("R06b", "DUPLICATE"),
        "not there": ("R06a", "NEW"),
        "no number": ("R06c", "IN_DOUBT"),
    }

    asked = '{"number": "A1"}'
    runs.land("deliveries", [delivery("in flight", answer=asked), delivery("next", answer=asked)])
    with killed_while_it_answers(postgres):
        runs.decide(clock=at(2))
    runs.land("deliveries", [delivery("while down", answer=asked)])
    runs.decide(clock=at(3))
    found = statuses(runs)
    assert len(found) == 6
    for name in ("in flight", "next", "while down"):
        rule, status, result, message = found[name]
        assert (rule, status, result) == ("R06e", "IN_DOUBT", "TRANSIENT_ERROR")
        assert message.startswith("TransientError: orders database: ")
    assert runs.rows("select count(*) from {schema}.document_status") == [(6,)]


@contextmanager
def killed_while_it_answers(postgres: Postgres) -> Iterator[None]:
    """Let the first query of orders wait for a lock, and end the server then."""
    waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"

    def kill() -> None:
        deadline = time.monotonic() + 120
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
