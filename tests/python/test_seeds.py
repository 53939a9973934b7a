"""A wrong value in a seed stops the run before anything is decided, with a line for each."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.dbt_commands import dbt
from dbt_exactly_once.adapter.macros import macro_result
from dbt_exactly_once.adapter.seed_files import seed_as_written
from dbt_exactly_once.cli import main
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.seed_check import SeedCheck

# one letter too long for the name of a folder
LONG = "\u0416" * 41
TRIGGERS = [
    {"trigger_name": "good"},
    {"trigger_name": "twice"},
    {"trigger_name": "twice"},
    {"trigger_name": "asks", "resolver": "orders.check"},
    {"trigger_name": "negative", "history_time_to_live_ms": "-5"},
    {"trigger_name": "fractional", "max_retry_attempts": "1.5"},
    {"trigger_name": "unsure", "enabled": "maybe"},
    {"trigger_name": "polite", "enabled": "yes"},
    {"trigger_name": "broken", "enabled": "true\n"},
    {"trigger_name": "loud", "enabled": "TRUE"},
    {"trigger_name": "foreign", "api": "AMQP"},
    {"trigger_name": "undated", "start_from": "yesterday"},
    {"trigger_name": "keyed", "key": "uuid ||"},
    {"trigger_name": "counted", "key": "count(*)"},
    {"trigger_name": "random", "key": "concat(uuid(), uuid)"},
    {"trigger_name": "timed", "key": "concat(uuid, current_date)"},
    {"trigger_name": "clocked", "key": "unix_timestamp( ) || uuid"},
    {"trigger_name": "quoted", "key": "concat('now()', %now/at%, unix_timestamp(received_at))"},
    {"trigger_name": LONG},
    {"trigger_name": LONG[1:]},
    {"trigger_name": "spaced", "enabled": " False ", "max_retry_attempts": " 007 "},
    {"trigger_name": "largest", "max_retry_attempts": "2147483647"},
    {"trigger_name": "larger", "max_retry_attempts": "2147483648"},
    {"trigger_name": "lasting", "history_time_to_live_ms": "10000000000000"},
    {"trigger_name": "eternal", "history_time_to_live_ms": "9223372036854775807"},
    {"trigger_name": "dated", "start_from": "2026-01-31T12:00:00+02:00"},
    # a K that is the sign of Kelvin
    {"trigger_name": "kelvin", "acknowledgement_mode": "DUPS_O\u212a_ACKNOWLEDGE"},
    {"trigger_name": "alone", "resolver": "None", "resource_monitor": "nOnE"},
]
CONDITIONS = [
    {"position": "1", "condition_name": "a", "filter": "no_such_column = 1"},
    {"position": "2", "condition_name": "b", "filter": "%order/total% > 5"},
    {"position": "3", "condition_name": "c", "filter": "uuid ="},
    {"position": "4", "condition_name": "d"},
    {"position": "4", "condition_name": "e"},
    {"position": "5", "condition_name": "f", "filter": "%order/total:double% > 5"},
    {"position": "6", "condition_name": "f"},
    {"position": "first", "condition_name": "g"},
    {"position": "7", "condition_name": "h", "trigger_name": "unknown"},
    {"position": "8", "condition_name": "i", "document_type": ""},
]
LINES = [
    ("triggers", "trigger twice", "stands there more than once"),
    ("triggers", "trigger asks", "resolver is orders.check"),
    ("triggers", "trigger negative", "history_time_to_live_ms is -5: use a whole number"),
    ("triggers", "trigger fractional", "max_retry_attempts is 1.5: use a whole number"),
    ("triggers", "trigger unsure", "enabled is maybe: use true or false"),
    ("triggers", "trigger polite", "enabled is yes: use true or false"),
    ("triggers", "trigger broken", "enabled is true"),
    ("triggers", "trigger foreign", "api is AMQP: use MSG or JMS"),
    ("triggers", "trigger undated", "start_from is yesterday: use a time"),
    ("triggers", "trigger keyed", "the key uuid || cannot be used"),
    ("triggers", "trigger counted", "the key count(*) cannot be used"),
    ("triggers", "trigger random", "the key concat(uuid(), uuid) cannot be used"),
    ("triggers", "trigger timed", "current_date gives each copy of a document another key"),
    ("triggers", "trigger clocked", "unix_timestamp gives each copy of a document another key"),
    ("triggers", "trigger " + LONG, "trigger_name is too long: use at most 242"),
    ("triggers", "trigger larger", "max_retry_attempts is 2147483648: use a whole number"),
    ("triggers", "trigger eternal", "history_time_to_live_ms is 9223372036854775807: use a whole"),
    ("triggers", "trigger kelvin", "acknowledgement_mode is DUPS_O\u212a_ACKNOWLEDGE: use"),
    ("trigger_conditions", "condition 1 of trigger good", "no_such_column"),
    ("trigger_conditions", "condition 2 of trigger good", "%order/total:double%"),
    ("trigger_conditions", "condition 3 of trigger good", "the filter uuid = cannot be used"),
    ("trigger_conditions", "condition 4 of trigger good", "two conditions stand in one position"),
    ("trigger_conditions", "condition f of trigger good", "the name stands there more than once"),
    ("trigger_conditions", "condition first of trigger good", "position is no whole number"),
    ("trigger_conditions", "condition 7 of trigger unknown", "no such trigger"),
    ("trigger_conditions", "condition 8 of trigger good", "document_type is blank"),
]
# what is wrong with these only Spark can tell, which knows the columns of deliveries
NEEDS_SPARK = {"condition 1 of trigger good", "trigger counted", "trigger random"}


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    return DbtRuns(spark, profiles_dir, tmp_path)


def test_every_wrong_value_is_told_by_seed_row_and_remedy(
    runs: DbtRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.seed("triggers", TRIGGERS)
    good = {"trigger_name": "good", "document_type": "order"}
    runs.seed("trigger_conditions", [{**good, **condition} for condition in CONDITIONS])
    runs.run("seed")
    told = failures(runs.dbt("run"))
    assert len(told) == 1, told
    lines = told[0].splitlines()
    for seed, row, problem in LINES:
        found = [line for line in lines if f"seed {seed}, {row}: " in line and problem in line]
        assert len(found) == 1, f"{row}: {problem}\n{told[0]}"
    assert len([line for line in lines if "exactly_once: seed" in line]) == len(LINES)
    assert runs.rows("select * from {schema}.published_runs") == []

    # `exactly-once check` finds the same without Spark, in the same words
    place = ["--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)]
    assert main(["check", *place]) == 1
    _, *wrong = re.split(r"^wrong +", capsys.readouterr().out, flags=re.MULTILINE)
    found = [text.partition("\nleft")[0].removesuffix("\n") for text in wrong]
    for text in found:
        # a run parses a query with the text in it, which ends otherwise
        assert " ".join(text.split("Syntax error")[0].split()) in " ".join(told[0].split())
    seen = {row for _, row, problem in LINES if any(f", {row}: " in text for text in found)}
    assert {row for _, row, _ in LINES} - seen == NEEDS_SPARK
    assert len(found) == len(LINES) - len(NEEDS_SPARK)


def test_a_seed_that_is_empty_or_not_its_csv_is_refused(runs: DbtRuns) -> None:
    runs.run("seed")
    runs.seed("triggers", [{"trigger_name": "orders_by_history", "api": "JMS"}])
    (told,) = failures(runs.dbt("run"))
    assert "seed triggers in the lake is not the version of seeds/triggers.csv" in told
    runs.seed("triggers", [])
    runs.run("seed")
    (told,) = failures(runs.dbt("run"))
    assert "seed triggers is empty: fill seeds/triggers.csv" in told


def test_a_column_that_a_later_version_has_added_is_named(runs: DbtRuns) -> None:
    """19, seeds of 0.1.0: a triggers.csv without one of the columns is refused in one line.

    The column key, which came with a later version, may be missing: it is blank then.
    """
    (runs.folder / "seeds" / "triggers.csv").write_text("trigger_name,api\norders,MSG\n")
    runs.run("seed")
    (told,) = failures(runs.dbt("run"))
    assert "seeds/triggers.csv has no column enabled, acknowledgement_mode, " in told
    assert "queue_capacity, start_from: add it" in told
    assert "add it, a blank means the default where there is one, and run `dbt seed`" in told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"trigger_name,api\na,MSG\nb,MSG,serial\n", "has 3 cells in line 3, and a header of 2"),
        # what follows would be part of a name
        (b'trigger_name,api\n"a,MSG\nb,MSG\n', "cannot be read at line 3: unexpected end"),
        (b'trigger_name,api\n"a,MSG\n"b",MSG\n', "cannot be read at line 3: "),
        (b"trigger_name,api\n" + b"a" * 200_000 + b",MSG\n", "cannot be read at line 2: "),
    ],
    ids=["more cells", "open quote", "quote in a name", "huge cell"],
)
def test_a_file_that_cannot_be_read_is_told_by_its_line(
    tmp_path: Path, content: bytes, told: str
) -> None:
    file = tmp_path / "triggers.csv"
    file.write_bytes(content)
    with pytest.raises(ExactlyOnceError) as raised:
        seed_as_written(str(file), ",")
    assert f"{file} {told}" in str(raised.value)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_that_is_not_utf8_is_told_without_a_traceback(
    runs: DbtRuns, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    """dbt reads every file of a project when it parses it."""
    file = runs.folder / "seeds" / "triggers.csv"
    file.write_bytes("trigger_name,api\nköln,MSG\n".encode(encoding))
    line = 2 if encoding == "latin-1" else 1
    told = f"{file} is not UTF-8 at line {line}: save it as UTF-8"
    result = dbt(["seed", "--quiet", *runs.place]).result
    assert isinstance(result.exception, ExactlyOnceError)
    assert told in str(result.exception)
    assert main(["check", *runs.place]) == 1
    said = capsys.readouterr().out
    assert told in said
    assert "Traceback" not in said


def test_seeds_that_were_right_are_looked_at_again_when_what_they_name_has_changed(
    runs: DbtRuns,
) -> None:
    runs.add_udfs("answer_in_document")
    asks = {"trigger_name": "asks", "detect_duplicates": True, "resolver": "answer_in_document"}
    runs.seed("triggers", [asks])
    condition = {"trigger_name": "asks", "condition_name": "all", "document_type": "order"}
    runs.seed("trigger_conditions", [{**condition, "position": 1}])
    runs.run("seed")
    runs.decide()
    runs.decide()

    hook = runs.folder / "python_udfs" / "answer_in_document.py"
    text = hook.read_text(encoding="utf-8")
    hook.unlink()
    assert "seed triggers, trigger asks: resolver is" in failures(runs.dbt("run"))[0]
    hook.write_text(text, encoding="utf-8")
    runs.decide()

    # past dbt, so the CSV's checksum is still there
    runs.rows("insert into {schema}.triggers (trigger_name, api) values ('foreign', 'AMQP')")
    for _ in range(2):
        assert "seed triggers, trigger foreign: api is AMQP" in failures(runs.dbt("run"))[0]


CELLS = ["", " ", "true", " False ", "TRUE", "tRuE\n", "yes", "0", " 007 ", "-1", "1.5", "1e3"]
CELLS += ["2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "\u0663"]
CELLS += ["5\n", "\t5", "2026-01-31", "2026-01-31T12:00:00+02:00", "24:00", "yesterday", "null"]
CELLS += ["none", " None ", "none\n", "nones", "a.b", "MSG", " msg ", "jms\u00a0", "AMQP"]
CELLS += ["DUPS_OK_ACKNOWLEDGE", "DUPS_O\u212a_ACKNOWLEDGE", "serial", "thro\u0175", "it's \\ %"]


def test_a_cell_means_the_same_to_models_and_to_the_check(spark: SparkSession) -> None:
    """`seed_value` in SQL and `SeedCheck.value` in Python read every cell alike."""
    words, defaults = (
        macro_result(PROJECT_FOLDER, f"seeds/{name}", name)
        for name in ("seed_words", "trigger_defaults")
    )
    text = (PROJECT_FOLDER / "macros" / "seeds" / "typed_seed.sql").read_text(encoding="utf-8")
    columns = [(name, kind) for name, (kind, _) in defaults.items()]
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    values = [
        environment.from_string(f"{text}{{{{ seed_value(name, kind, 'cell') }}}}").render(
            name=name, kind=kind, seed_words=lambda: words
        )
        for name, kind in columns
    ]
    cells = spark.createDataFrame([(cell,) for cell in CELLS], "cell string")
    texts = (
        # a time may be written in many ways
        f"cast({sql} as string)" if kind != "timestamp" else f"if({sql} is null, null, cell)"
        for sql, (_, kind) in zip(values, columns, strict=True)
    )
    read = cells.selectExpr("cell", *(f"{text} as c{at}" for at, text in enumerate(texts)))

    class Spark:
        def is_time(self, text: str) -> bool:
            cell = spark.createDataFrame([(text,)], "cell string")
            return cell.selectExpr("try_cast(cell as timestamp) is not null").head()[0]

    check = SeedCheck(words, defaults, {}, Spark())
    different = [
        (cell, name, value, expected)
        for cell, *found in read.collect()
        for (name, kind), value in zip(columns, found, strict=True)
        if (expected := check.value(name, kind, cell))
        != (value.strip(" ") if value and kind == "timestamp" else value)
    ]
    assert different == []
