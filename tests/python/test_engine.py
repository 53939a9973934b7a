"""What a run asks of its tables is the same by SQL and by Iceberg's own methods."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.engine import RUN_ID, Engine, appended_between, run_in
from dbt_exactly_once.adapter.session import find_names_once
from dbt_exactly_once.adapter.session_engine import MOST_ROWS, SessionEngine, engine_of
from dbt_exactly_once.errors import ExactlyOnceError, error_text, errors_in_one_line, one_line
from dbt_exactly_once.run.begin import RUN_ID_PROPERTY

Rows = Callable[[str], list[tuple[object, ...]]]
SETTING = "spark.wap.branch"


class Adapter:
    """As much of dbt's adapter as an engine uses, over the tests' session."""

    def __init__(self, spark: SparkSession, method: str) -> None:
        self._spark = spark
        self.config = SimpleNamespace(credentials=SimpleNamespace(method=method))
        self.connections = SimpleNamespace(
            get_thread_connection=lambda: SimpleNamespace(handle=spark)
        )

    def execute(self, sql: str, auto_begin: bool, fetch: bool) -> tuple[None, Any]:
        return None, SimpleNamespace(rows=self._spark.sql(sql).collect())


@pytest.fixture(params=["thrift", "session"])
def engine(request: pytest.FixtureRequest, spark: SparkSession) -> Engine:
    found = engine_of(Adapter(spark, request.param))
    assert type(found) is {"thrift": Engine, "session": SessionEngine}[request.param]
    return found


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    schema = f"engine_{uuid4().hex[:10]}"
    spark.sql(f"create namespace {schema}")
    spark.sql(
        f"create table {schema}.t (n int) using iceberg "
        "tblproperties ('write.wap.enabled' = 'true', 'said' = 'it''s')"
    )
    spark.sql(f"insert into {schema}.t values (1)")
    yield f"{schema}.t"
    spark.sql(f"drop table {schema}.t purge")


def written_to_branch(spark: SparkSession, table: str, branch: str) -> None:
    spark.sql(f"alter table {table} create branch {branch}")
    spark.sql(f"insert into {table}.branch_{branch} values (2)")


def test_properties_are_those_of_the_table_and_none_where_there_is_none(
    engine: Engine, table: str
) -> None:
    found = engine.properties(table)
    assert found is not None
    assert found["write.wap.enabled"] == "true"
    assert found["said"] == "it's"
    # by it a run knows that a seed is what it was
    assert found["current-snapshot-id"] == engine.refs([table])[table]["main"]
    assert engine.properties(f"{table}_that_is_not_there") is None


@pytest.mark.parametrize("made_again", [True, False])
def test_a_table_that_is_renamed_while_it_is_asked_for_is_as_it_was_or_is(
    spark: SparkSession, table: str, made_again: bool
) -> None:
    """Others release and take the lock while a run asks who holds it."""
    engine = engine_of(Adapter(spark, "session"))
    assert engine.properties(table) is not None
    classes = engine._classes["Spark3Util"]

    def load_and_rename(session: object, relation: str) -> object:
        found = classes.loadIcebergTable(session, relation)
        engine.rename(table, "another_name")
        if made_again:
            spark.sql(f"create table {table} (n int) using iceberg tblproperties ('said' = 'new')")
        return found

    engine._classes["Spark3Util"] = SimpleNamespace(
        loadIcebergTable=load_and_rename, catalogAndIdentifier=classes.catalogAndIdentifier
    )
    found = engine.properties(table)
    assert found is None or found["said"] in ("it's", "new")
    if made_again:
        engine.drop_table(table)
    engine.rename(table.replace(".t", ".another_name"), "t")


def test_a_time_that_python_cannot_read_is_the_nearest_that_it_can(spark: SparkSession) -> None:
    read = run_in(spark)(
        "select timestamp '-0005-01-01' as `a.b`, timestamp '0001-01-01', timestamp '2026-01-01',"
        " timestamp '+12000-01-01' as far, cast(null as timestamp) as none, 'text' as text"
    )
    early, last = datetime(1, 1, 3), datetime(9999, 12, 31, 23, 59, 59, 999999)
    in_utc = [
        value and value.astimezone(timezone.utc).replace(tzinfo=None) for value in read[0][:5]
    ]
    assert in_utc == [early, early, datetime(2026, 1, 1), last, None]
    assert read[0][5] == "text"


def test_refs_name_every_branch_and_tag_with_its_snapshot(
    engine: Engine, spark: SparkSession, table: str, rows: Rows
) -> None:
    written_to_branch(spark, table, "run_1")
    spark.sql(f"alter table {table} create tag kept")
    expected = dict(rows(f"select name, cast(snapshot_id as string) from {table}.refs"))
    assert set(expected) == {"main", "run_1", "kept"}
    assert engine.refs([table]) == {table: expected}
    assert engine.refs([]) == {}


def test_the_parent_of_a_snapshot_is_the_one_before_it(engine: Engine, table: str) -> None:
    first = engine.refs([table])[table]["main"]
    engine.commit_no_rows(table)
    second = engine.refs([table])[table]["main"]
    assert engine.parent(table, second) == first
    assert engine.parent(table, first) is None
    assert engine.parent(table, "1") is None


def test_what_expires_are_old_snapshots_that_nothing_names(
    engine: Engine, spark: SparkSession, table: str, rows: Rows
) -> None:
    kept = engine.refs([table])[table]["main"]
    engine.set_tag(table, "kept", kept)
    spark.sql(f"insert into {table} values (2)")
    ((only_there,),) = rows(f"select input_file_name() from {table} where n = 2")
    file = Path(urlparse(str(only_there)).path)
    spark.sql(f"insert overwrite {table} values (3)")
    between = datetime.now(timezone.utc)
    spark.sql(f"insert into {table} values (4)")
    spark.sql(f"insert into {table} values (5)")
    assert file.exists()

    # what is current when the time has passed stays
    assert engine.expire_snapshots(table, between) == 2
    assert engine.expire_snapshots(table, between) == 0
    assert rows(f"select n from {table} order by 1") == [(3,), (4,), (5,)]
    assert rows(f"select n from {table} version as of {kept}") == [(1,)]
    assert not file.exists()


def test_a_commit_of_no_rows_gives_a_table_its_main_and_changes_nothing(
    engine: Engine, spark: SparkSession, table: str, rows: Rows
) -> None:
    new = f"{table}_new"
    spark.sql(f"create table {new} (n int) using iceberg")
    assert engine.refs([new]) == {new: {}}
    before = engine.refs([table])
    for relation in (new, table):
        engine.commit_no_rows(relation)
    assert set(engine.refs([new])[new]) == {"main"}
    assert engine.refs([table]) != before
    assert rows(f"select * from {table}") == [(1,)]
    assert rows(f"select * from {new}") == []
    spark.sql(f"drop table {new} purge")


def test_a_tag_is_set_and_moved(
    engine: Engine, spark: SparkSession, table: str, rows: Rows
) -> None:
    first = engine.refs([table])[table]["main"]
    engine.set_tag(table, "a tag", first)
    spark.sql(f"insert into {table} values (2)")
    second = engine.refs([table])[table]["main"]
    assert rows(f"select n from {table} version as of 'a tag'") == [(1,)]
    engine.set_tag(table, "a tag", second)
    assert engine.refs([table])[table] == {"main": second, "a tag": second}


def test_a_schema_is_made_once_and_a_table_is_renamed_and_dropped(
    engine: Engine, spark: SparkSession, table: str, rows: Rows
) -> None:
    schema = f"made_{uuid4().hex[:8]}"
    engine.make_schema(schema)
    engine.make_schema(schema)
    for name in ("old", "taken"):
        spark.sql(f"create table {schema}.{name} (n int) using iceberg")
    with pytest.raises(Exception, match="already exists"):
        engine.rename(f"{schema}.old", "taken")
    engine.rename(f"{schema}.old", "new")
    assert {row[1] for row in rows(f"show tables in {schema}")} == {"new", "taken"}
    for name in ("new", "taken", "new"):
        engine.drop_table(f"{schema}.{name}")
    assert rows(f"show tables in {schema}") == []


def test_fast_forward_moves_main_and_drops_the_branch(
    engine: Engine, spark: SparkSession, table: str, rows: Rows
) -> None:
    written_to_branch(spark, table, "run_1")
    branch = engine.refs([table])[table]["run_1"]
    engine.fast_forward(table, "run_1")
    assert engine.refs([table]) == {table: {"main": branch}}
    assert sorted(rows(f"select n from {table}")) == [(1,), (2,)]


def test_fast_forward_of_a_branch_that_main_has_left_is_refused(
    engine: Engine, spark: SparkSession, table: str
) -> None:
    written_to_branch(spark, table, "run_1")
    spark.sql(f"insert into {table} values (3)")
    before = engine.refs([table])
    with pytest.raises(Exception, match="not an ancestor"):
        engine.fast_forward(table, "run_1")
    assert engine.refs([table]) == before


def test_a_branch_starts_at_a_snapshot_and_a_name_is_given_once(
    engine: Engine, spark: SparkSession, table: str
) -> None:
    first = engine.refs([table])[table]["main"]
    spark.sql(f"insert into {table} values (2)")
    engine.create_branch(table, "earlier", first)
    found = engine.refs([table])[table]
    assert found["earlier"] == first != found["main"]
    with pytest.raises(Exception, match="already exists"):
        engine.create_branch(table, "earlier", first)


def test_dropping_a_branch_leaves_the_others_and_none_is_no_error(
    engine: Engine, spark: SparkSession, table: str
) -> None:
    written_to_branch(spark, table, "run_1")
    written_to_branch(spark, table, "run_2")
    engine.drop_branch(table, "run_1")
    engine.drop_branch(table, "run_1")
    assert set(engine.refs([table])[table]) == {"main", "run_2"}


def test_a_setting_is_set_read_and_reset(engine: Engine, spark: SparkSession) -> None:
    assert engine.setting(SETTING) is None
    engine.set(SETTING, "run_1")
    assert engine.setting(SETTING) == "run_1"
    assert spark.conf.get(SETTING) == "run_1"
    engine.reset(SETTING)
    assert engine.setting(SETTING) is None
    assert engine.catalog() == "lake"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Spark is gone: "),
        (
            RuntimeError("IllegalStateException: a stopped SparkContext\n\tat org.x.Y"),
            "Spark is gone",
        ),
        (
            RuntimeError(
                "failed\n\tat org.x.Y\nCaused by: java.lang.OutOfMemoryError: heap\n\tat z"
            ),
            "java.lang.OutOfMemoryError: heap (give Spark's processes more ",
        ),
        # of a catalog's server, not of Spark
        (
            RuntimeError(
                "failed\n\tat org.x.Y\nCaused by: x.PSQLException: Connection refused\n\tat z"
            ),
            "x.PSQLException: Connection refused (mend it and start the run again: ",
        ),
    ],
)
def test_an_error_of_pages_or_of_a_socket_is_a_line_that_says_what_to_do(
    error: Exception, line: str
) -> None:
    with pytest.raises(ExactlyOnceError) as told, errors_in_one_line():
        raise error
    assert told.value.msg.startswith(line)
    assert "start the run again" in told.value.msg
    assert "\n" not in told.value.msg


def test_an_error_that_is_clear_stays_as_it_is() -> None:
    with pytest.raises(ValueError, match=r"^no such column$"), errors_in_one_line():
        raise ValueError("no such column")


class UnspeakableError(Exception):
    """As a library may raise it."""

    def __str__(self) -> str:
        raise self


class ExitingError(Exception):
    """Whose text ends the program."""

    def __str__(self) -> str:
        sys.exit("no text")


def test_an_error_without_a_text_ends_nothing() -> None:
    assert error_text(UnspeakableError()) == "UnspeakableError"
    assert one_line(UnspeakableError()) == ""
    assert error_text(ExitingError()) == "ExitingError: no text"


def test_no_part_of_a_password_is_shown() -> None:
    url = "jdbc:postgresql://host/db?user=u&password=ab:cd;ef"
    error = RuntimeError(
        f"failed\n\tat x\nCaused by: x.UncheckedSQLException: Failed to connect: {url}"
    )
    assert "jdbc:postgresql://host/db" in one_line(error)
    assert not {"ab", "cd", "ef"} & set(re.split(r"\W+", one_line(error)))


def test_small_tables_and_views_are_read_from_memory_as_they_are_stored(
    spark: SparkSession, table: str, rows: Rows
) -> None:
    """Also what is no UTF-8, in a struct, and what a branch or a later snapshot does not have."""
    engine = engine_of(Adapter(spark, "session"))
    schema = table.rpartition(".")[0]
    start = engine.refs([table])[table]["main"]
    spark.sql(f"insert into {table} values (2)")
    assert engine.keep_in_memory(table, "kept_now") is not None
    assert engine.keep_in_memory(table, "kept_before", start) is not None
    spark.sql(f"insert into {table} values (3)")
    assert sorted(rows("select n from kept_now")) == [(1,), (2,)]
    assert rows("select n from kept_before") == [(1,)]

    spark.sql(
        f"create table {schema}.odd using iceberg as select "
        "cast(X'61ff' as string) as text, array(struct(cast(X'ff' as string) as inner, 1 as n)) as "
        "structs, map('k', timestamp '0001-01-01') as times, cast(null as decimal(9, 2)) as nothing"
    )
    spark.sql(f"create view {schema}.seen as select text from {schema}.odd")
    try:
        assert engine.keep_in_memory(f"{schema}.odd", "kept_odd") is not None
        shown = (
            "select hex(text), hex(structs[0].inner), structs[0].n, unix_micros(times['k']), "
            "nothing from "
        )
        assert rows(shown + "kept_odd") == rows(shown + f"{schema}.odd")
        assert rows("select hex(text) from kept_odd") == [("61FF",)]
        assert spark.table("kept_odd").schema == spark.table(f"{schema}.odd").schema
        assert engine.keep_in_memory(f"{schema}.seen", "kept_seen") is not None
        assert rows("select hex(text) from kept_seen") == [("61FF",)]
        engine.forget_in_memory(["kept_now", "kept_before", "kept_odd", "kept_seen"])
        assert not spark.catalog.tableExists("kept_odd")
    finally:
        spark.sql(f"drop view {schema}.seen")
        spark.sql(f"drop table {schema}.odd purge")


def test_appended_rows_are_those_of_the_commits_between_two_snapshots(
    spark: SparkSession, table: str, rows: Rows
) -> None:
    """Neither earlier rows nor later ones, and also those of a branch."""
    engine = engine_of(Adapter(spark, "session"))
    start = engine.refs([table])[table]["main"]
    written_to_branch(spark, table, "run_a")
    spark.sql(f"insert into {table} values (3)")
    end = engine.refs([table])[table]["run_a"]
    assert rows(f"select n from {appended_between(table, start, end)}") == [(2,)]
    assert rows(f"select n from {appended_between(table, start, start)}") == []


def test_columns_are_named_in_the_order_of_the_table(
    engine: Engine, spark: SparkSession, table: str
) -> None:
    spark.sql(f"alter table {table} add columns (last string, inner struct<a: int>)")
    spark.sql(f"alter table {table} add columns (`it's first` int first)")
    assert engine.columns(table) == ["it's first", "n", "last", "inner"]


def test_java_is_not_asked_again_for_a_name_without_a_package(spark: SparkSession) -> None:
    asked = []
    view = type(spark._jvm)
    ask = view.__getattr__

    def listen(jvm: Any, name: str) -> Any:
        asked.append(name)
        return ask(jvm, name)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(view, "__getattr__", listen)
        spark.sql("select 1").collect()
        assert "PythonUtils" not in asked
        vars(spark._jvm).pop("PythonUtils")
        spark.sql("select 1").collect()
        # the reason for find_names_once
        assert "PythonUtils" in asked
        find_names_once(spark)
        asked.clear()
        spark.sql("select 1").collect()
        assert "PythonUtils" not in asked


def test_rows_in_memory_are_not_shuffled_and_no_rows_not_joined(
    spark: SparkSession, table: str
) -> None:
    engine = engine_of(Adapter(spark, "session"))

    def plan(query: str) -> str:
        return str(spark.sql(f"explain {query}").collect()[0][0])

    groups = "select n, count(*) from {} group by n"
    engine.keep_in_memory(table, "kept_rows")
    assert "Exchange" in plan(groups.format(table))
    assert "Exchange" not in plan(groups.format("kept_rows"))

    spark.sql(f"delete from {table} where true")
    engine.keep_in_memory(table, "kept_empty")
    join = "select kept_rows.n from kept_rows inner join {} as other on kept_rows.n = other.n"
    assert "Join" in plan(join.format("kept_rows"))
    assert "Join" not in plan(join.format("kept_empty"))
    engine.forget_in_memory(["kept_rows", "kept_empty"])


def test_a_table_of_a_run_is_kept_or_emptied_if_it_has_the_properties(
    spark: SparkSession, table: str, rows: Rows
) -> None:
    engine = engine_of(Adapter(spark, "session"))
    code = {"made-of-code": "new"}
    run_of = f"select summary['{RUN_ID}'] from {table}.snapshots order by committed_at desc limit 1"
    spark.sql(f"alter table {table} set tblproperties ('made-of-code' = 'new')")
    spark.conf.unset(RUN_ID_PROPERTY)
    spark.sql(f"insert into {table} values (0)")
    # nobody knows who has written its rows
    assert not engine.commit_as_run(table, "run 1", code, empties=False)
    spark.conf.set(RUN_ID_PROPERTY, "run 0")
    try:
        spark.sql(f"insert into {table} values (2)")
    finally:
        spark.conf.unset(RUN_ID_PROPERTY)
    assert not engine.commit_as_run(table, "run 1", code | {"other": "1"}, empties=False)
    assert not engine.commit_as_run(f"{table}_of_nobody", "run 1", {}, empties=False)
    assert rows(run_of) == [("run 0",)]

    assert engine.commit_as_run(table, "run 1", code, empties=False)
    assert rows(run_of) == [("run 1",)]
    assert sorted(rows(f"select n from {table}")) == [(0,), (1,), (2,)]

    assert engine.commit_as_run(table, "run 2", code, empties=True)
    assert engine.snapshot_runs([table]) == {table: "run 2"}
    assert rows(f"select count(*) from {table}") == [(0,)]
    assert engine.keep_in_memory(table, "kept_empty") == 0
    engine.forget_in_memory(["kept_empty"])


def test_a_table_of_many_rows_is_not_read_from_memory(spark: SparkSession, table: str) -> None:
    engine = engine_of(Adapter(spark, "session"))
    spark.sql(f"insert into {table} select id from range({MOST_ROWS - 1})")
    assert engine.keep_in_memory(table, "kept_most") is not None
    spark.sql(f"insert into {table} values (0)")
    assert engine.keep_in_memory(table, "kept_more") is None
    assert not spark.catalog.tableExists("kept_more")
    engine.forget_in_memory(["kept_most"])


def test_rows_are_counted_where_the_summary_of_a_snapshot_lacks_their_number(
    spark: SparkSession, table: str, rows: Rows
) -> None:
    """Iceberg writes no total any more once a delete has dropped whole partitions."""
    engine = engine_of(Adapter(spark, "session"))
    schema = table.rpartition(".")[0]
    waiting = f"{schema}.waiting"
    spark.sql(f"create table {waiting} (p string, n int) using iceberg partitioned by (p)")
    try:
        spark.sql(f"insert into {waiting} values ('a', 1), ('b', 2)")
        spark.sql(f"delete from {waiting} where p in ('a', 'b')")
        spark.sql(f"insert into {waiting} values ('a', 3)")
        assert engine.keep_in_memory(waiting, "kept_waiting") is not None
        assert rows("select p, n from kept_waiting") == [("a", 3)]
        engine.forget_in_memory(["kept_waiting"])
    finally:
        spark.sql(f"drop table {waiting} purge")


def test_an_error_of_spark_is_told_without_the_plan(spark: SparkSession) -> None:
    with pytest.raises(ExactlyOnceError) as told, errors_in_one_line():
        spark.sql("with some as (select 1 as one) select * from some where exists (from nothing)")
    line, *more = told.value.msg.splitlines()
    assert line.startswith("[TABLE_OR_VIEW_NOT_FOUND] The table or view `nothing` cannot be found")
    assert more == []
