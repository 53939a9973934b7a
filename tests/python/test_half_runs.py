"""Nothing but a whole run is published: parts, retries, failing tests, foreign scratch tables."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from dbt_runs import DbtRuns, failures
from faults import Failing
from pyspark.sql import SparkSession
from test_transaction import delivery

from dbt_exactly_once.services.effects import Effect

BUILD = ("build", "--selector", "hot_path")
BROKEN = "{{ exceptions.raise_compiler_error('broken') if execute }}"
REMEDY = "would run a part of the transaction only"


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.run("seed")
    return found


def published(runs: DbtRuns) -> int:
    return runs.rows("select count(*) from {schema}.published_runs")[0][0]


def decided(runs: DbtRuns) -> set[str]:
    return {row[0] for row in runs.rows("select delivery_id from {schema}.document_status")}


def test_a_part_of_a_run_is_refused(runs: DbtRuns) -> None:
    for selection in (["--select", "decisions"], ["--exclude", "published_runs"]):
        (told,) = failures(runs.dbt("run", *selection))[:1]
        assert REMEDY in told
        assert "dbt build" in told


def test_a_model_that_would_keep_unpublished_rows_is_refused(runs: DbtRuns) -> None:
    """18.21: A model of the user's that keeps rows of a ledger runs after publication."""
    project = yaml.safe_load((runs.folder / "dbt_project.yml").read_text())
    project["model-paths"] = ["models", "mine"]
    (runs.folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    mine = runs.folder / "mine"
    mine.mkdir()
    reads = "select delivery_id, run_id from {{ ref('document_status') }}"
    models = {
        "keeps_rows": "{{ config(materialized='table') }} " + reads,
        "a_view": "{{ config(materialized='view') }} " + reads,
        "keeps_rows_of_a_view": "{{ config(materialized='incremental') }} "
        "select * from {{ ref('a_view') }}",
        "reads_a_public_view": "{{ config(materialized='table') }} "
        "select delivery_id from {{ ref('decided_deliveries') }}",
        "behind": "-- depends_on: {{ ref('published_runs') }}\n"
        "{{ config(materialized='table') }} " + reads,
    }
    for name, sql in models.items():
        (mine / f"{name}.sql").write_text(sql)
    runs.forget_parsed()
    runs.land("deliveries", [delivery(1)])
    (told,) = failures(runs.dbt(*BUILD[:1], "--exclude", "resource_type:unit_test"))[:1]
    assert "exactly_once: keeps_rows, keeps_rows_of_a_view would keep rows" in told
    assert "-- depends_on: {{ ref('published_runs') }}" in told
    assert "decided_deliveries" in told

    for name in ("keeps_rows", "keeps_rows_of_a_view"):
        model = mine / f"{name}.sql"
        model.write_text(f"-- depends_on: {{{{ ref('published_runs') }}}}\n{model.read_text()}")
    runs.forget_parsed()
    runs.run("run", "--select", "tag:transaction", *models, "decided_deliveries")
    for name in models:
        assert runs.rows(f"select distinct delivery_id from {{schema}}.{name}") == [("d1",)], name


def test_a_first_run_that_ends_while_it_makes_a_ledger_is_followed_by_others(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is there, and has no snapshot yet that a branch could start from."""
    transaction = ("run", "--select", "tag:transaction")
    with monkeypatch.context() as patch:
        Failing(patch, lambda change: change == f"commit_no_rows {runs.schema}.history_ledger")
        assert not runs.dbt(*transaction).success
    runs.land("deliveries", [delivery(1)])
    runs.run(*transaction)
    assert decided(runs) == {"d1"}


def test_what_failed_is_refused_until_all_of_it_runs(runs: DbtRuns) -> None:
    runs.run(*BUILD)
    runs.land("deliveries", [delivery(1)])
    never = runs.own("tests") / "invariants" / "never.sql"
    never.write_text("select delivery_id from {{ ref('document_status') }}")
    runs.forget_parsed()
    for _ in range(2):
        assert [told.split(":")[0] for told in failures(runs.dbt(*BUILD))] == ["never"]
        assert (published(runs), decided(runs)) == (0, set())

    # the test, and what was left out because of it
    (told,) = failures(runs.dbt("retry"))[:1]
    assert REMEDY in told
    assert (published(runs), decided(runs)) == (0, set())

    never.unlink()
    record = runs.own("models") / "record" / "published_runs.sql"
    right = record.read_text()
    record.write_text(f"{right}\n-- {BROKEN}")
    runs.forget_parsed()
    assert "broken" in failures(runs.dbt("run"))[0]
    record.write_text(right)
    runs.forget_parsed()
    (told,) = failures(runs.dbt("retry"))[:1]
    assert REMEDY in told
    assert (published(runs), decided(runs)) == (0, set())
    runs.decide()
    assert (published(runs), decided(runs)) == (1, {"d1"})


def test_a_run_that_was_refused_is_started_again(runs: DbtRuns) -> None:
    runs.land("deliveries", [delivery(1)])
    triggers = runs.folder / "seeds" / "triggers.csv"
    right = triggers.read_text()
    triggers.write_text(right.replace("orders_by", "by"))
    runs.forget_parsed()
    (told,) = failures(runs.dbt("run"))[:1]
    assert "dbt seed" in told
    triggers.write_text(right)
    runs.forget_parsed()
    (told,) = failures(runs.dbt("retry"))[:1]
    assert REMEDY in told
    runs.decide()
    assert (published(runs), decided(runs)) == (1, {"d1"})


def test_a_model_after_publication_is_retried_alone(runs: DbtRuns) -> None:
    runs.land("deliveries", [delivery(1)])
    model = runs.own("models") / "execute" / "new_documents.sql"
    right = model.read_text()
    model.write_text(f"{right}\n-- {BROKEN}")
    runs.forget_parsed()
    assert "broken" in failures(runs.dbt(*BUILD))[0]
    assert (published(runs), decided(runs)) == (1, {"d1"}), "its decisions stand"

    model.write_text(right)
    runs.forget_parsed()
    (told,) = failures(runs.dbt("retry"))[:1]
    assert "under its lock" in told
    runs.decide()
    runs.run(*BUILD)
    assert published(runs) == 1
    assert {row[0] for row in runs.rows("select delivery_id from {schema}.new_documents")} == {"d1"}


def test_nothing_is_left_to_retry_of_a_run_that_was_killed(runs: DbtRuns) -> None:
    runs.decide()
    runs.land("deliveries", [delivery(1)])
    branches = "select 1 from {schema}.document_status.refs where name like 'run%'"
    runs.kill_when(runs.start("run"), lambda: bool(runs.rows(branches)))
    runs.run("retry")
    assert (published(runs), decided(runs)) == (0, set())
    runs.decide()
    assert decided(runs) == {"d1"}


def test_a_scratch_table_of_another_run_is_not_published(runs: DbtRuns) -> None:
    """As a run leaves it that slept while this one took over, and woke in the middle of it."""
    runs.land("deliveries", [delivery(1)])
    decisions = runs.own("models") / "detect" / "decisions.sql"
    right = decisions.read_text()
    maker = "set `spark.sql.iceberg.snapshot-property.run-id` = "
    hooks = [
        maker + "00000000-zombie",
        "create or replace table {{ this }} using iceberg as select * from {{ this }}",
        maker + "{{ invocation_id }}",
    ]
    decisions.write_text(f"{{{{ config(post_hook={hooks}) }}}}\n{right}")
    runs.forget_parsed()
    told = failures(runs.dbt(*BUILD))
    assert [text.split(":")[0] for text in told] == ["published_runs"]
    assert "decisions was written by run 00000000-zombie while run" in told[0]
    assert (published(runs), decided(runs)) == (0, set())

    decisions.write_text(right)
    runs.forget_parsed()
    runs.decide()
    assert decided(runs) == {"d1"}


def test_a_run_that_was_taken_over_adds_no_new_documents(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18.9: while a run's insert into new_documents is at work, the run that has taken over adds
    the same documents; they stand there once."""
    runs.land("deliveries", [delivery(1)])
    append = Effect.append

    def append_late(effect: Effect, select: str) -> None:
        append(effect, select)
        # as the other run does
        table = f"{runs.schema}.new_documents"
        runs.spark.sql(f"insert into {table} select * from {table}.branch_{effect.branch}")

    monkeypatch.setattr(Effect, "append", append_late)
    (told,) = failures(runs.dbt(*BUILD))[:1]
    assert "adds nothing to" in told
    assert "the next run adds what is missing" in told
    monkeypatch.undo()
    runs.run(*BUILD)
    counts = runs.rows(
        "select delivery_id, count(*) from {schema}.new_documents "
        "group by delivery_id, trigger_name"
    )
    assert set(counts) == {("d1", 1)}
