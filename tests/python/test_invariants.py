"""Every invariant can fail, and one that gates keeps a run from being published.

One project plays a short story: a run is published, a run with a broken rule is refused by an
invariant, and the same landing is decided by the repaired project. Each violation is then made in
a copy of one table of that state, and the compiled test must find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner, dbtRunnerResult
from dbt_runs import LEDGERS, PROJECT_FOLDER, DbtRuns, failures
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

START = datetime(2024, 3, 1, 12, 0, tzinfo=timezone.utc)
TESTS = {
    path.stem: path.parent.name
    for folder in ("invariants", "audit")
    for path in (PROJECT_FOLDER / "tests" / folder).glob("*.sql")
}


# The story --------------------------------------------------------------------------------------


def minutes(number: int) -> datetime:
    """A time of the story."""
    return START + timedelta(minutes=number)


def delivery(delivery_id: str | None, at: int, key: str | None, **other: Any) -> dict[str, Any]:
    """A row of the landed deliveries."""
    return {
        "delivery_id": delivery_id,
        "received_at": minutes(at),
        "landed_at": minutes(at),
        "transport": "RABBITMQ",
        "document_type": "order",
        "guaranteed": True,
        "uuid": key,
        "redelivery_count": 0,
        "document": "{}",
    } | other


def execution(number: int, delivery_id: str, trigger_name: str, event: str) -> dict[str, Any]:
    """A word of a service."""
    return {
        "execution_id": f"e{number}",
        "delivery_id": delivery_id,
        "trigger_name": trigger_name,
        "service": "ship",
        "attempt": 1,
        "event": event,
        "started_at": minutes(20),
        "ended_at": None if event == "STARTED" else minutes(21),
        "recorded_at": minutes(20) if event == "STARTED" else minutes(21),
    }


FIRST_LANDING = [
    delivery("first", 0, "a"),
    delivery("copy", 1, "a", redelivery_count=1),
    delivery("unfinished", 2, "b"),
    delivery("without key", 3, None),
]
SECOND_LANDING = [
    delivery("new", 30, "c"),
    delivery("copy of new", 31, "c", redelivery_count=1),
    delivery("copy of unfinished", 32, "b"),
    delivery("late copy", 33, "a"),
    delivery("too long", 34, "k" * 97),
    delivery("volatile", 35, "d", guaranteed=False),
    delivery("unrouted", 36, "e", document_type="nobody wants it"),
    delivery("rejected", 37, "f", transport="PIGEON"),
    delivery(None, 38, "g"),
]
EXECUTIONS = [
    execution(1, "first", "ships", "STARTED"),
    execution(2, "first", "ships", "SUCCESS"),
    execution(3, "unfinished", "ships", "STARTED"),
]


@dataclass
class Story:
    """What is kept of the refused run, and the state after the repaired one."""

    project: DbtRuns
    broken_says: list[str]
    skipped_by_broken: set[str]
    main_before: dict[str, Any]
    main_after: dict[str, Any]
    branches_after: list[Any]
    tested: dbtRunnerResult | None = None

    def invariants(self) -> dict[str, Any]:
        """Each invariant as `dbt test` has compiled it for the last published run."""
        assert self.tested is not None
        nodes = [item.node for item in self.tested.result.results]
        return {node.name: node for node in nodes if node.name in TESTS}


def write_seeds(project: DbtRuns) -> None:
    """Triggers of every kind of detection, with and without a service."""
    history = {"detect_duplicates": True, "use_history": True, "execution_timeout_ms": 86_400_000}
    project.seed(
        "triggers",
        [
            {"trigger_name": "ships", **history},
            {"trigger_name": "counts", "detect_duplicates": True},
            {"trigger_name": "records", **history},
            {"trigger_name": "sleeps", "enabled": False, **history},
            {
                "trigger_name": "asks",
                "detect_duplicates": True,
                "resolver": "examples.jms_delivery_count",
            },
        ],
    )
    services = {"ships": "ship", "counts": "count", "records": None, "sleeps": None, "asks": None}
    project.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": name,
                "position": 1,
                "condition_name": "all",
                "document_type": "order",
                "service": service,
            }
            for name, service in services.items()
        ],
    )


def mains(project: DbtRuns) -> dict[str, Any]:
    """The snapshot of main of every ledger."""
    return {
        name: project.rows(f"select snapshot_id from {{schema}}.{name}.refs where name = 'main'")
        for name in LEDGERS
    }


def run_branches(project: DbtRuns) -> list[Any]:
    """The branches that runs have left."""
    return [
        row
        for name in LEDGERS
        for row in project.rows(f"select name from {{schema}}.{name}.refs where name != 'main'")
    ]


@pytest.fixture(scope="module")
def story(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Story:
    """Published, refused, repaired."""
    project = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("invariants"))
    macros = project.own("macros")
    write_seeds(project)
    project.run("seed")

    hot_path = ("build", "--selector", "hot_path")
    project.land("deliveries", FIRST_LANDING)
    published = project.dbt(*hot_path, clock=minutes(10))
    assert published.success, failures(published)

    project.land("deliveries", SECOND_LANDING)
    project.land("trigger_executions", EXECUTIONS)
    before = mains(project)
    rule = macros / "detect" / "decision_rule.sql"
    right = rule.read_text()
    broken = right.replace("left[0][column] }}", "left[0][column].replace('R09', 'R08') }}")
    assert broken != right
    rule.write_text(broken)
    project.forget_parsed()
    refused = project.dbt(*hot_path, clock=minutes(40))
    assert not refused.success
    kept = Story(
        project,
        failures(refused),
        {item.node.name for item in refused.result.results if item.status == "skipped"},
        before,
        mains(project),
        run_branches(project),
    )

    rule.write_text(right)
    project.forget_parsed()
    repaired = project.dbt(*hot_path, clock=minutes(41))
    assert repaired.success, failures(repaired)
    # an audit reads views for people, which a schedule does not make
    project.run("run", "--select", "path:models/report")
    kept.tested = project.dbt("test", "--select", "path:tests/invariants", "path:tests/audit")
    return kept


def test_a_broken_rule_is_named_and_publishes_nothing(story: Story) -> None:
    assert len(story.broken_says) == 1
    assert story.broken_says[0].startswith("a_decision_names_a_rule_that_matches_its_evidence: ")
    assert "published_runs" in story.skipped_by_broken
    assert story.main_after == story.main_before
    assert story.branches_after == []


def test_the_next_run_decides_what_the_refused_one_did_not(story: Story) -> None:
    assert story.project.rows(
        "select trigger_name, delivery_id, status, rule_id from {schema}.document_status "
        "where trigger_name = 'ships' order by received_at"
    ) == [
        ("ships", "first", "NEW", "R07"),
        ("ships", "copy", "DUPLICATE", "R09"),
        ("ships", "unfinished", "NEW", "R07"),
        ("ships", "without key", "IN_DOUBT", "R12"),
        ("ships", "new", "NEW", "R07"),
        ("ships", "late copy", "DUPLICATE", "R09"),
        ("ships", "too long", "IN_DOUBT", "R12"),
        ("ships", "volatile", "NOT_CHECKED", "R01"),
    ]
    assert story.project.rows("select run_number from {schema}.published_runs order by 1") == [
        (1,),
        (2,),
    ]


def test_every_invariant_holds_and_outside_of_a_run_looks_at_the_last(story: Story) -> None:
    assert story.tested is not None
    assert story.tested.success, failures(story.tested)
    assert set(story.invariants()) == set(TESTS)
    ((run_id,),) = story.project.rows(
        "select max_by(run_id, run_number) from {schema}.published_runs"
    )
    for name, node in story.invariants().items():
        asks_for_a_run = "checked_run" in node.raw_code
        assert (run_id in node.compiled_code) == asks_for_a_run, name
        assert asks_for_a_run == (TESTS[name] == "invariants"), name


def test_an_invariant_gates_and_an_audit_does_not(story: Story) -> None:
    arguments = ["--project-dir", str(story.project.folder), "--profiles-dir"]
    arguments += [str(story.project.folder), "--quiet"]

    def listed(*selection: str) -> set[str]:
        return {
            str(name).rsplit(".", 1)[-1]
            for name in dbtRunner().invoke(["ls", *selection, *arguments]).result
        }

    before_publication = listed("--resource-type", "test", "--selector", "hot_path")
    assert before_publication == {name for name, kind in TESTS.items() if kind == "invariants"}
    assert listed("--selector", "gate") == before_publication
    assert listed("--selector", "audit") == {n for n, kind in TESTS.items() if kind == "audit"}
    manifest = dbtRunner().invoke(["parse", *arguments]).result
    upstream = {"model.exactly_once.published_runs"}
    while (
        found := {parent for node in upstream for parent in manifest.parent_map.get(node, [])}
        - upstream
    ):
        upstream |= found
    for node in manifest.nodes.values():
        if node.name in TESTS:
            gates = set(node.depends_on.nodes) <= upstream - {"model.exactly_once.published_runs"}
            assert gates == (TESTS[node.name] == "invariants"), node.name


# Violations -------------------------------------------------------------------------------------

Change = Callable[[DataFrame], DataFrame]


def with_values(where: str, **values: str) -> Change:
    """Other values (SQL) in the rows of a condition."""

    def change(table: DataFrame) -> DataFrame:
        hit = f.expr(where)
        return table.withColumns(
            {
                name: f.when(hit, f.expr(value).cast(table.schema[name].dataType)).otherwise(
                    f.col(name)
                )
                for name, value in values.items()
            }
        )

    return change


def with_more(where: str, **values: str) -> Change:
    """The rows of a condition once more, with other values (SQL)."""
    return lambda table: table.unionByName(
        with_values("true", **values)(table.where(where)).select(table.columns)
    )


def without(where: str) -> Change:
    """The rows of a condition are gone."""
    return lambda table: table.where(f"not coalesce({where}, false)")


def in_entries(change: Change) -> tuple[str, Change]:
    """A change of history_ledger where each row of it has one entry."""

    def changed(table: DataFrame) -> DataFrame:
        processing = table.where("has_processing").withColumn("has_completed", f.lit(False))
        completed = table.where("has_completed").withColumn("has_processing", f.lit(False))
        return change(processing.unionByName(completed))

    return "history_ledger", changed


def of(delivery_id: str, trigger_name: str = "ships") -> str:
    """A condition for one delivery of a trigger."""
    return f"(delivery_id = '{delivery_id}' and trigger_name = '{trigger_name}')"


NEW, COPY, LATE = of("new", "records"), of("copy of new", "records"), of("late copy", "records")
COMPLETED = "has_completed"
TICK = "interval 1 second"

VIOLATIONS: dict[str, dict[str, tuple[str, Change]]] = {
    "a_delivery_is_decided_once": {
        "decided twice": ("decisions", with_more(NEW)),
    },
    "every_taken_delivery_has_exactly_one_fate": {
        "decided and forgotten": ("document_status", without(NEW)),
        "recorded twice": ("document_status", with_more(NEW)),
        "decided though not taken": ("trigger_queue", without(NEW)),
        "waiting and forgotten": ("waiting_deliveries", without(of("copy of new"))),
        "waiting and decided": (
            "document_status",
            with_more(NEW, delivery_id="'copy of new'", trigger_name="'ships'"),
        ),
        "kept for a disabled trigger and forgotten": (
            "waiting_deliveries",
            without(of("new", "sleeps")),
        ),
        "unrouted and not told": ("journal_entries", without("delivery_id = 'unrouted'")),
        "rejected and not kept": ("rejected_deliveries", without("delivery_id is null")),
        "rejected and decided": (
            "trigger_queue",
            with_values("delivery_id = 'rejected'", queue_outcome="'QUEUED'"),
        ),
    },
    "every_returning_delivery_is_taken": {
        "waited and left out": ("trigger_queue", without(of("copy"))),
    },
    "duplicates_and_in_doubt_leave_no_history": {
        "a duplicate with an entry": ("document_status", with_values(NEW, status="'DUPLICATE'")),
        "in doubt with an entry": ("document_status", with_values(NEW, status="'IN_DOUBT'")),
    },
    "a_completed_entry_has_the_times_of_its_processing_entry": {
        "another start": in_entries(
            with_values(f"{NEW} and {COMPLETED}", started_at=f"started_at + {TICK}")
        ),
        "another expiry": in_entries(
            with_values(f"{NEW} and {COMPLETED}", expires_at=f"expires_at + {TICK}")
        ),
        "other times than the processing entry of an earlier run": in_entries(
            with_values(f"{of('first')} and {COMPLETED}", expires_at=f"expires_at + {TICK}")
        ),
        "no processing entry": in_entries(without(f"{NEW} and has_processing")),
    },
    "one_entry_per_document_and_status": {
        "two of one status": in_entries(with_more(f"{NEW} and {COMPLETED}")),
        "of no status": in_entries(with_values(f"{NEW} and {COMPLETED}", has_completed="false")),
    },
    "a_document_is_new_once_in_its_time_to_live": {
        "new twice in a chain": (
            "decisions",
            with_values(COPY, status="'NEW'", decided_by="'HISTORY'"),
        ),
        "new though an earlier run knew it": (
            "decisions",
            with_values(LATE, status="'NEW'", decided_by="'HISTORY'"),
        ),
        "new while the one before it is unfinished": (
            "decisions",
            with_values(of("copy of new"), status="'NEW'", decided_by="'HISTORY'"),
        ),
    },
    "a_copy_that_waited_for_a_document_is_not_new_after_it": {
        "new after the success that it waited for": (
            "decisions",
            with_values(
                of("late copy"),
                status="'NEW'",
                decided_by="'HISTORY'",
                awaited_key_hash="key_hash",
            ),
        ),
    },
    "history_decides_independently_of_the_count": {
        "another rule for another count": (
            "decisions",
            with_values(of("late copy"), rule_id="'R05'", redelivery="'REDELIVERED'"),
        ),
        "decided by the count": ("decisions", with_values(NEW, decided_by="'COUNT'")),
    },
    "the_resolver_is_asked_only_where_a_rule_needs_it": {
        "asked though history says none": (
            "decisions",
            with_values(NEW, resolver_result="'NEW'"),
        ),
        "asked though history says both": (
            "decisions",
            with_values(LATE, resolver_result="'DUPLICATE'"),
        ),
        "asked for a delivery that waits": (
            "decisions",
            with_values(of("copy of new"), resolver_result="'DUPLICATE'"),
        ),
    },
    "a_resolver_is_asked_once_about_a_delivery": {
        "asked twice": ("resolver_answers", with_more("true", message="'once more'")),
        "an answer that is none": (
            "resolver_answers",
            with_values("true", resolver_result="'MAYBE'"),
        ),
        "no answer": ("resolver_answers", with_values("true", resolver_result="null")),
    },
    # 19.6: in the order in which the run has observed them
    "every_step_of_a_document_is_an_allowed_one": {
        "a step that is not allowed": (
            "status_transitions",
            without("from_state = 'RECEIVED' and to_state = 'WAITING'"),
        ),
        "it waits though it was decided": (
            "waiting_deliveries",
            with_more(of("copy of new"), delivery_id="'new'"),
        ),
        "decided though the queue did not have it": (
            "trigger_queue",
            with_values(NEW, had_waited="true", delivery_id="'another'"),
        ),
        "an open document is decided again": (
            "document_status",
            with_more(of("new"), delivery_id="'unfinished'"),
        ),
        "its end is told once more": (
            "journal_entries",
            with_more("event = 'SUCCESS'", event="'INTERRUPTED'"),
        ),
        "an unfinished document is received again": (
            "in_execution_this_run",
            with_more(of("first"), delivery_id="'new'"),
        ),
    },
    "every_step_in_all_runs_is_an_allowed_one": {
        "a state that is none": ("document_lifecycle", with_values("true", state="'AGAIN'")),
        "a step that is not allowed": (
            "document_lifecycle",
            with_values("from_state is null", from_state="'ACKNOWLEDGED'"),
        ),
    },
    "a_decision_names_a_rule_that_matches_its_evidence": {
        "another rule": ("decisions", with_values(LATE, rule_id="'R08'")),
        "an unknown rule": ("decisions", with_values(LATE, rule_id="'R99'")),
        "a status that the rule does not give": ("decisions", with_values(LATE, status="'NEW'")),
        "a method that the rule does not name": (
            "decisions",
            with_values(LATE, decided_by="'COUNT'"),
        ),
        "evidence of another rule": ("decisions", with_values(LATE, history_state="'NONE'")),
        "settings of another rule": (
            "trigger_queue",
            with_values("trigger_name = 'records'", use_history="false"),
        ),
        "an operator's word on what nobody resubmitted": (
            "decisions",
            with_values(NEW, rule_id="'OPERATOR'"),
        ),
        "too many recoveries of what never came back": (
            "decisions",
            with_values(LATE, rule_id="'MAX_RECOVERIES'", status="'IN_DOUBT'"),
        ),
        "a status without a rule": ("decisions", with_values(LATE, rule_id="null")),
    },
    "a_suspended_delivery_waits": {
        "it has a status": ("decisions", with_values(NEW, status="'SUSPENDED'")),
        "it waits and its trigger goes on": (
            "decisions",
            with_values(of("copy of new"), status="'SUSPENDED'"),
        ),
    },
    "an_open_document_has_a_service_and_no_completed_entry": {
        "without a service": ("open_documents", with_values(of("new"), service="null")),
        "completed": in_entries(with_more(f"{NEW} and {COMPLETED}", trigger_name="'ships'")),
    },
    "a_document_is_open_until_its_service_has_ended": {
        "forgotten before its service began": ("open_documents", without(of("new"))),
        "forgotten while its service is at work": ("open_documents", without(of("unfinished"))),
        "open though its service has ended": (
            "open_documents",
            with_more(of("unfinished"), delivery_id="'first'"),
        ),
        "open twice": ("open_documents", with_more(of("new"))),
    },
    "a_new_document_enters_history": {
        "no entry": in_entries(without(NEW)),
        "an entry before its service has begun": in_entries(
            with_more(f"{NEW} and not {COMPLETED}", trigger_name="'ships'")
        ),
        "no completed entry where there is nothing to run": in_entries(
            without(f"{NEW} and {COMPLETED}")
        ),
        "a completed entry before its service has ended": in_entries(
            with_more(f"{NEW} and {COMPLETED}", trigger_name="'ships'")
        ),
        "an entry of another key": in_entries(with_values(NEW, key_hash="key_hash + 1")),
        "an entry of another time": in_entries(with_values(NEW, expires_at=f"expires_at + {TICK}")),
    },
    "a_duplicate_names_a_delivery_of_its_key_and_trigger": {
        "none": ("decisions", with_values(LATE, matched_delivery_id="null")),
        "itself": ("decisions", with_values(LATE, matched_delivery_id="delivery_id")),
        "one of another key": ("decisions", with_values(LATE, matched_delivery_id="'new'")),
        "one of another trigger": ("decisions", with_values(LATE, trigger_name="'counts'")),
    },
    "a_chain_stops_at_its_first_undecided_delivery": {
        "decided behind one that waits": (
            "decisions",
            with_values(NEW, is_decided="false"),
        ),
    },
    "a_delivery_is_decided_once_in_all_runs": {
        "decided again by a later run": (
            "document_status",
            with_more(of("first"), run_id="'a later run'"),
        ),
    },
    "a_document_is_new_once_in_all_history": {
        "new though another of its key is live": in_entries(
            with_values("trigger_name = 'ships'", key_hash="1", key_check="1")
        ),
    },
    "history_holds_only_new_documents": {
        "a duplicate": ("document_status", with_values(of("first"), status="'DUPLICATE'")),
        "one that nobody decided": ("document_status", without(of("first"))),
    },
    "entries_of_a_document_agree": {
        "two of one status": in_entries(with_more(of("first"))),
        "completed without processing": in_entries(without(f"{of('first')} and not {COMPLETED}")),
        "another start": in_entries(
            with_values(f"{of('first')} and {COMPLETED}", started_at=f"started_at + {TICK}")
        ),
        "completed for a shorter time": in_entries(
            with_values(f"{of('first')} and {COMPLETED}", expires_at=f"expires_at - {TICK}")
        ),
    },
    "a_waiting_delivery_has_no_status": {
        "decided and waiting": (
            "waiting_deliveries",
            with_more(of("copy of new"), delivery_id="'first'"),
        ),
    },
    "an_open_document_was_decided_and_not_completed": {
        "never decided": ("document_status", without(of("unfinished"))),
        "a duplicate": ("document_status", with_values(of("unfinished"), status="'DUPLICATE'")),
        "completed": in_entries(
            with_more(of("unfinished"), has_processing="false", has_completed="true")
        ),
    },
    "a_decision_belongs_to_a_published_run": {
        "of no published run": (
            "document_status",
            with_values(of("first"), run_id="'never published'"),
        ),
        "fewer than its run has recorded": ("document_status", without(of("first"))),
        "a run is forgotten": ("published_runs", without("run_number = 1")),
    },
    "every_landed_delivery_is_decided_or_explained": {
        "unrouted and not told": ("journal_entries", without("delivery_id = 'unrouted'")),
        "rejected and not kept": ("rejected_deliveries", without("delivery_id = 'rejected'")),
    },
    "no_expired_entry_is_left": {
        "expired long ago": in_entries(
            with_values(of("first"), expires_at="timestamp '2020-01-01 00:00:00'")
        ),
    },
    "published_runs_are_numbered_without_a_gap": {
        "two of one number": ("published_runs", with_values("true", run_number="1")),
        "a number is missing": ("published_runs", without("run_number = 1")),
        "published twice": ("published_runs", with_more("run_number = 2", run_number="3")),
        "two publications of one number": (
            "published_runs",
            with_values("true", publication_number="1"),
        ),
    },
}


def test_every_invariant_is_violated_below() -> None:
    assert set(VIOLATIONS) == set(TESTS)


@pytest.fixture
def copy_of(story: Story, spark: SparkSession) -> Iterator[Callable[[str, Change], str]]:
    """Names a changed copy of a table."""
    name = "violated"

    def make(table: str, change: Change) -> str:
        change(story.project.table(table)).createOrReplaceTempView(name)
        return name

    yield make
    spark.catalog.dropTempView(name)


@pytest.mark.parametrize(
    ("invariant", "violation"),
    [(name, violation) for name, violations in VIOLATIONS.items() for violation in violations],
)
def test_a_violation_is_found(
    invariant: str,
    violation: str,
    story: Story,
    spark: SparkSession,
    copy_of: Callable[[str, Change], str],
) -> None:
    table, change = VIOLATIONS[invariant][violation]
    statement = story.invariants()[invariant].compiled_code
    relation = f"{story.project.schema}.{table}"
    violated = statement.replace(relation, copy_of(table, change))
    assert violated != statement, f"{invariant} does not read {table}"
    assert spark.sql(violated).limit(1).count(), f"{invariant} does not find: {violation}"
