"""The demo: one real feed, decided with history and by the redelivery count alone, and processed.

Its project is this one with two more triggers, whose services are a dbt model and Python functions.

    python demo/run_demo.py [--verbose]
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import yaml

from dbt_exactly_once.adapter.session import (
    PROJECT_FILE,
    Project,
    find_project,
    open_session,
    read_credentials,
    read_yaml,
)
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.landing.land import land

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = Path("demo/rabbitmq_orders.jsonl.gz")
LAKE = Path(".lake/demo")
# triggers of seeds/triggers.csv that differ in how they detect, and in nothing else
BY_HISTORY = "orders_by_history"
BY_COUNT = "orders_by_count"
SERVICES = Path("demo/services")
# triggers of demo/services/triggers.csv; the service of the second one dies at its work
BY_SERVICES = "order_desk"
BY_KILLED = "parcel_desk"
WORKER_SERVICE = "orders.refund"
KILLED_SERVICE = "parcels.pack"
# all refunds at once: a worker takes seconds to look for more work
CONCURRENCY = 400
LINKED = ("models", "macros", "tests", "docs", "selectors.yml")

NEXT_STEPS = """
What dbt wrote is in {log}, or on the screen with --verbose.

Where to look next, in this lake (the settings are seeds/triggers.csv):

    export EXACTLY_ONCE_LAKE={lake}
    .venv/bin/dbt show --limit 20 --inline "select * from {{{{ ref('exactly_once_statistics') }}}}"
    .venv/bin/dbt show --inline "select * from {{{{ ref('in_doubt_documents') }}}}"
    .venv/bin/dbt show --inline "select * from {{{{ ref('duplicates') }}}}"
    .venv/bin/dbt show --inline "select * from {{{{ ref('new_documents') }}}}"

Your own feed goes into your own lake (unset EXACTLY_ONCE_LAKE):

    .venv/bin/exactly-once land FILE...
    .venv/bin/dbt build
"""


def run_demo(project: Project, verbose: bool = False) -> None:
    """Land the feed in an empty lake, decide it, and print what two triggers make of it.

    verbose: show dbt's own lines; else they are in a file only.
    """
    lake = project.folder / LAKE
    # the demo empties its lake first, so that it can be repeated
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    # the example profile and not the user's: that may lead to a lake that is in use
    shutil.copy(project.folder / "profiles.example.yml", lake / "profiles.yml")
    os.environ["EXACTLY_ONCE_LAKE"] = str(lake)
    # dbt reads these, which may name what the example profile does not have
    os.environ |= {"DBT_PROFILE": "exactly_once", "DBT_TARGET": "local"}

    desk = _demo_project(project, lake)
    dbt = partial(_dbt, desk, lake, verbose)
    credentials = read_credentials(project, lake)
    schema = credentials.schema
    with _step("start Spark (the first time it fetches two jars)"):
        spark = open_session(credentials, project.spark_log)
    with _step(f"land {FEED}") as notes:
        notes.append(str(land(spark, project, [project.folder / FEED])))
    with _step("decide each delivery: dbt build"):
        dbt("build")
    rows = spark.sql(
        f"""
        select trigger_name, status, rule_id, count(*)
        from {schema}.document_status
        where trigger_name in ('{BY_HISTORY}', '{BY_COUNT}')
        group by trigger_name, status, rule_id
        """
    ).collect()
    print(comparison([tuple(row) for row in rows]), end="\n\n", flush=True)

    with _step(f"process: exactly-once worker --service {WORKER_SERVICE}") as notes:
        notes.append(_work(spark, desk, schema, project.landing_schema))
    with _step(f"kill the worker of {KILLED_SERVICE} in the middle of its work"):
        _work_and_die(desk, lake)
    with _step(f"deliver all of {BY_SERVICES} and {BY_KILLED} a second time"):
        _deliver_again(spark, schema, project.landing_schema)
    with _step("decide these too: dbt build --selector hot_path"):
        dbt("build", "--selector", "hot_path")

    print(_second_deliveries(spark, schema))
    print(NEXT_STEPS.format(lake=shlex.quote(str(lake)), log=lake / "logs" / "dbt.log"))


def _demo_project(project: Project, lake: Path) -> Project:
    """A project in the lake's folder: this one, with the triggers and services of the demo."""
    folder = lake / "project"
    (folder / "seeds").mkdir(parents=True)
    for name in LINKED:
        (folder / name).symlink_to(project.folder / name)
    (folder / "services").symlink_to(project.folder / SERVICES / "models")
    (folder / "python_udfs").symlink_to(project.folder / SERVICES / "python_udfs")
    content = read_yaml(project.folder / PROJECT_FILE)
    content["model-paths"] = [*content["model-paths"], "services"]
    (folder / PROJECT_FILE).write_text(yaml.safe_dump(content), encoding="utf-8")
    for seed in (project.folder / "seeds").iterdir():
        text = seed.read_text(encoding="utf-8")
        more = project.folder / SERVICES / seed.name
        if more.exists():
            # without its header
            text += more.read_text(encoding="utf-8").partition("\n")[2]
        (folder / "seeds" / seed.name).write_text(text, encoding="utf-8")
    return Project(folder, project.variables, project.package_folder)


def _work(spark: SparkSession, desk: Project, schema: str, landing: str) -> str:
    """Let a worker in this process do what there is to do; returns its outcome."""
    from dbt_exactly_once.adapter.engine import Engine, run_in
    from dbt_exactly_once.resolvers.hooks import load_hooks
    from dbt_exactly_once.services.python_services import worker_of

    worker = worker_of(
        Engine(run_in(spark)),
        schema,
        f"{landing}.trigger_executions",
        load_hooks(desk.folder),
        [WORKER_SERVICE],
        concurrency=CONCURRENCY,
        echo=lambda _: None,
    )
    worker.run(once=True)
    return ", ".join(f"{number} {event}" for event, number in worker.counts.items())


def _work_and_die(desk: Project, lake: Path) -> None:
    """A worker in a process of its own, whose service kills it."""
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "dbt_exactly_once.cli", "worker", "--service", KILLED_SERVICE),
            *("--project-dir", str(desk.folder), "--profiles-dir", str(lake)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode >= 0:
        raise ExactlyOnceError(f"the worker was not killed: {ended.stdout}{ended.stderr}")


def _deliver_again(spark: SparkSession, schema: str, landing: str) -> None:
    """Deliver once more, a second later, the first delivery of each document of two triggers."""
    columns = spark.table(f"{landing}.deliveries").columns
    changed = {
        "delivery_id": "concat(deliveries.delivery_id, '-again-for-', decided.trigger_name)",
        "received_at": "deliveries.received_at + interval 1 second",
        "landed_at": "current_timestamp()",
        "destination": "decided.trigger_name",
        "redelivery_count": "deliveries.redelivery_count + 1",
    }
    values = ", ".join(changed.get(name, f"deliveries.{name}") + f" as {name}" for name in columns)
    spark.sql(
        f"""
        insert into {landing}.deliveries
        select {values}
        from {landing}.deliveries as deliveries
        inner join {schema}.document_status as decided
            on deliveries.delivery_id = decided.delivery_id
        where
            decided.trigger_name in ('{BY_SERVICES}', '{BY_KILLED}')
            and decided.status = 'NEW'
            and decided.service is not null
        """
    )


def _second_deliveries(spark: SparkSession, schema: str) -> str:
    """The outcomes of the documents of the services, and of their second deliveries."""
    ends = spark.sql(
        f"""
        select statuses.service, journal.event, count(*)
        from {schema}.journal_entries as journal
        inner join {schema}.document_status as statuses
            on
                journal.delivery_id = statuses.delivery_id
                and journal.trigger_name = statuses.trigger_name
        where
            journal.trigger_name in ('{BY_SERVICES}', '{BY_KILLED}')
            and journal.event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED')
        group by statuses.service, journal.event
        order by statuses.service, journal.event
        """
    ).collect()
    again = spark.sql(
        f"""
        select trigger_name, status, count(*)
        from {schema}.document_status
        where delivery_id like '%-again-for-%'
        group by trigger_name, status
        order by trigger_name, status
        """
    ).collect()
    lines = ["\nServices of two more triggers (demo/services) have processed the same feed:"]
    lines += [f"    {service:16}{event:14}{number:>6,}" for service, event, number in ends]
    lines.append("and the second delivery of each of their documents is:")
    lines += [f"    {trigger:16}{status:14}{number:>6,}" for trigger, status, number in again]
    lines.append("The one that is in doubt had its worker killed: nobody can say what it has done.")
    return "\n".join(lines)


@contextmanager
def _step(does: str) -> Iterator[list[str]]:
    """Print what is done, then the notes that the step has added, and how long it took."""
    print(f"-- {does}", flush=True)
    began = monotonic()
    notes: list[str] = []
    yield notes
    print(f"   {'; '.join([*notes, f'{monotonic() - began:.0f} s'])}", flush=True)


def _dbt(project: Project, lake: Path, verbose: bool, *arguments: str) -> None:
    from dbt_exactly_once.adapter.dbt_commands import dbt

    log = lake / "logs"
    # in this process, so that Spark is started once
    done = dbt(
        [
            *arguments,
            *([] if verbose else ["--quiet"]),
            f"--project-dir={project.folder}",
            f"--profiles-dir={lake}",
            f"--target-path={lake / 'target'}",
            f"--log-path={log}",
        ]
    )
    if done.failures:
        raise ExactlyOnceError(
            f"dbt {arguments[0]} failed, so nothing was published: {done.failures[0]}; "
            f"{log}/dbt.log has more"
        )


def comparison(rows: list[tuple[str, str, str, int]]) -> str:
    """The decisions of both triggers side by side; rows are trigger, status, rule and number."""
    numbers: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for trigger, status, rule, number in sorted(rows):
        numbers[status, trigger][rule] = number

    def cell(status: str, trigger: str) -> str:
        found = numbers[status, trigger]
        return f"{sum(found.values()):,}" + (f" ({', '.join(found)})" if found else "")

    lines = [f"\n{'':12}{BY_HISTORY:>24}{BY_COUNT:>24}"]
    lines += [
        f"{status:12}{cell(status, BY_HISTORY):>24}{cell(status, BY_COUNT):>24}"
        for status in sorted({status for _, status, _, _ in rows})
    ]
    by_history, by_count = (
        sum(numbers["IN_DOUBT", trigger].values()) for trigger in (BY_HISTORY, BY_COUNT)
    )
    lines.append(
        f"\nOf the same deliveries the count alone leaves {by_count:,} in doubt, "
        f"history {by_history:,}.\nIn brackets the rules of seeds/decision_rules.csv."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        run_demo(find_project(Path(__file__).parents[1]), verbose="--verbose" in sys.argv)
    except ExactlyOnceError as error:
        sys.exit(f"demo: {one_line(error)}")
