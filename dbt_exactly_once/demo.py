"""The demo: one real feed, decided with history and by the redelivery count alone."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from pathlib import Path

from dbt_exactly_once.engine import ExactlyOnceError
from dbt_exactly_once.land import land
from dbt_exactly_once.session import Project, open_session, quiet_start, read_credentials

FEED = Path("demo/rabbitmq_orders.jsonl.gz")
LAKE = Path(".lake/demo")
# triggers of seeds/triggers.csv that differ in how they detect, and in nothing else
BY_HISTORY = "orders_by_history"
BY_COUNT = "orders_by_count"

NEXT_STEPS = """
Where to look next, in this lake (the settings are seeds/triggers.csv):

    export EXACTLY_ONCE_LAKE={lake}
    .venv/bin/dbt show --inline "select * from {{{{ ref('exactly_once_statistics') }}}}"
    .venv/bin/dbt show --inline "select * from {{{{ ref('in_doubt_documents') }}}}"
    .venv/bin/dbt show --inline "select * from {{{{ ref('duplicates') }}}}"
    .venv/bin/dbt show --inline "select * from {{{{ ref('new_documents') }}}}"

Your own feed goes into your own lake (unset EXACTLY_ONCE_LAKE):

    .venv/bin/exactly-once land FILE...
    .venv/bin/dbt build
"""


def run_demo(project: Project) -> int:
    """Land the feed in an empty lake, run `dbt build`, print what two triggers make of it."""
    lake = project.folder / LAKE
    # the demo empties its lake first, so that it can be repeated
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    # the example profile and not the user's: that may lead to a lake that is in use
    shutil.copy(project.folder / "profiles.example.yml", lake / "profiles.yml")
    os.environ["EXACTLY_ONCE_LAKE"] = str(lake)

    credentials = read_credentials(project, lake)
    _say("starting Spark (the first start on a machine fetches two jars)")
    with quiet_start(project):
        spark = open_session(credentials)
    _say(f"exactly-once land {FEED}")
    _say(str(land(spark, project, [project.folder / FEED])))
    _say("dbt build")
    _dbt_build(project, lake)

    rows = spark.sql(
        f"""
        select trigger_name, status, rule_id, count(*)
        from {credentials.schema}.document_status
        where trigger_name in ('{BY_HISTORY}', '{BY_COUNT}')
        group by trigger_name, status, rule_id
        """
    ).collect()
    print(comparison([tuple(row) for row in rows]))
    print(NEXT_STEPS.format(lake=lake))
    return 0


def _say(line: str) -> None:
    print(f"-- {line}", flush=True)


def _dbt_build(project: Project, lake: Path) -> None:
    from dbt.cli.main import dbtRunner

    # in this process, so that Spark is started once
    result = dbtRunner().invoke(
        [
            "build",
            f"--project-dir={project.folder}",
            f"--profiles-dir={lake}",
            f"--target-path={lake / 'target'}",
        ]
    )
    if result.exception is not None:
        raise ExactlyOnceError(f"dbt build did not end: {result.exception}")
    if not result.success:
        raise ExactlyOnceError("dbt build failed, so nothing was published; see its lines above")


def comparison(rows: list[tuple[str, str, str, int]]) -> str:
    """The decisions of both triggers side by side; rows are trigger, status, rule and number."""
    numbers: dict[str, dict[str, list[tuple[str, int]]]] = defaultdict(lambda: defaultdict(list))
    for trigger, status, rule, number in sorted(rows):
        numbers[status][trigger].append((rule, number))

    def cell(status: str, trigger: str) -> str:
        found = numbers[status][trigger]
        rules = ", ".join(rule for rule, _ in found)
        return f"{sum(number for _, number in found):,}" + (f" ({rules})" if found else "")

    lines = [f"\n{'':12}{BY_HISTORY:>24}{BY_COUNT:>24}"]
    lines += [
        f"{status:12}{cell(status, BY_HISTORY):>24}{cell(status, BY_COUNT):>24}"
        for status in sorted(numbers)
    ]
    doubtful = {
        trigger: sum(number for _, number in numbers["IN_DOUBT"][trigger])
        for trigger in (BY_HISTORY, BY_COUNT)
    }
    lines.append(
        f"\nOf the same deliveries the count alone leaves {doubtful[BY_COUNT]:,} in doubt, "
        f"history {doubtful[BY_HISTORY]:,}.\nIn brackets the rules of seeds/decision_rules.csv."
    )
    return "\n".join(lines)
